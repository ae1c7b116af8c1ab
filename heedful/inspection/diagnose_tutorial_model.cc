#include "heedful/inspection/diagnose_tutorial_model.h"

#include <algorithm>
#include <array>
#include <optional>

#include "heedful/core/random.h"
#include "heedful/inspection/diagnose_tape.h"

namespace heedful::diagnosis {
namespace {

constexpr int kAlphabet = 4, kPad = kAlphabet, kVocabulary = kAlphabet + 1;
constexpr int kT = 6, kC = 8, kH = 2, kD = kC / kH, kBatch = 4, kBack = 2;

// Where each matrix begins among the parameters.
constexpr int kTokens = 0, kPositions = kTokens + kVocabulary * kC, kQuery = kPositions + kT * kC,
              kKey = kQuery + kC * kC, kValue = kKey + kC * kC, kOut = kValue + kC * kC, kLogits = kOut + kC * kC,
              kParameters = kLogits + kC * kAlphabet;

using Row = std::vector<Recorded>;

struct Sequence {
  std::array<int, kT> tokens;
  int padding;  // tokens before the first real one
};

class Model {
 public:
  Model(Tape& tape, const std::vector<double>& parameters, Trap trap) : trap_(trap) {
    for (const double parameter : parameters) weights_.push_back(tape.input(parameter));
  }

  // The mean loss over the positions that have a token kBack places before them.
  std::optional<Recorded> loss(const Sequence& sequence) const {
    std::vector<Row> x;
    for (int t = 0; t < kT; ++t) {
      Row row;
      for (int c = 0; c < kC; ++c) {
        const Recorded token = at(kTokens, sequence.tokens[static_cast<std::size_t>(t)], c, kC);
        row.push_back(trap_ == Trap::position_missing ? token : token + at(kPositions, t, c, kC));
      }
      x.push_back(std::move(row));
    }
    const std::vector<Row> mixed = project(attention(x, sequence.padding), kOut, kC);
    std::optional<Recorded> total;
    int counted = 0;
    for (int t = sequence.padding + kBack; t < kT; ++t) {
      Row y;
      for (int c = 0; c < kC; ++c) y.push_back(x[size(t)][size(c)] + mixed[size(t)][size(c)]);
      const Row logits = project({y}, kLogits, kAlphabet).front();
      Recorded sum = exp(logits[0]);
      for (int v = 1; v < kAlphabet; ++v) sum = sum + exp(logits[size(v)]);
      const Recorded loss = log(sum) - logits[size(sequence.tokens[size(t - kBack)])];
      total = total ? *total + loss : loss;
      ++counted;
    }
    if (total) total = *total * (1.0 / counted);
    return total;
  }

 private:
  static std::size_t size(int index) { return static_cast<std::size_t>(index); }
  Recorded at(int matrix, int row, int column, int width) const {
    return weights_[size(matrix + row * width + column)];
  }

  std::vector<Row> project(const std::vector<Row>& x, int matrix, int width) const {
    std::vector<Row> y;
    for (const Row& row : x) {
      Row result;
      for (int column = 0; column < width; ++column) {
        Recorded sum = row[0] * at(matrix, 0, column, width);
        for (int c = 1; c < kC; ++c) sum = sum + row[size(c)] * at(matrix, c, column, width);
        result.push_back(sum);
      }
      y.push_back(std::move(result));
    }
    return y;
  }

  bool sees(int i, int j, int padding) const {
    if (j > i) return false;
    if (trap_ == Trap::padding_missing) return true;
    return (trap_ == Trap::padding_on_queries ? i : j) >= padding;
  }

  // [T, C], heads joined.
  std::vector<Row> attention(const std::vector<Row>& x, int padding) const {
    const std::vector<Row> q = project(x, kQuery, kC), k = project(x, kKey, kC), v = project(x, kValue, kC);
    const Recorded zero = q[0][0] * 0.0;
    std::vector<Row> joined(kT, Row(kC, zero));
    for (int h = 0; h < kH; ++h) {
      const std::vector<Row> weights = softmax(scores(q, k, h), padding, zero);
      for (int i = 0; i < kT; ++i) {
        for (int d = 0; d < kD; ++d) {
          Recorded sum = zero;
          for (int j = 0; j < kT; ++j) sum = sum + weights[size(i)][size(j)] * v[size(j)][size(h * kD + d)];
          const int flat = (h * kT + i) * kD + d;  // in [H, T, D], taken for [T, H·D] by the trap
          const bool is_mixed = trap_ == Trap::heads_merged_untransposed;
          joined[size(is_mixed ? flat / kC : i)][size(is_mixed ? flat % kC : h * kD + d)] = sum;
        }
      }
    }
    return joined;
  }

  std::vector<Row> scores(const std::vector<Row>& q, const std::vector<Row>& k, int h) const {
    const double scale = trap_ == Trap::scale_missing ? 1 : 1 / std::sqrt(static_cast<double>(kD));
    std::vector<Row> result;
    for (int i = 0; i < kT; ++i) {
      Row row;
      for (int j = 0; j < kT; ++j) {
        Recorded sum = q[size(i)][size(h * kD)] * k[size(j)][size(h * kD)];
        for (int d = 1; d < kD; ++d) sum = sum + q[size(i)][size(h * kD + d)] * k[size(j)][size(h * kD + d)];
        row.push_back(sum * scale);
      }
      result.push_back(std::move(row));
    }
    return result;
  }

  // Scores of this model stay small enough for exp without subtracting their maximum.
  std::vector<Row> softmax(const std::vector<Row>& s, int padding, Recorded zero) const {
    const bool over_queries = trap_ == Trap::softmax_over_queries, late = trap_ == Trap::mask_after_softmax;
    std::vector<Row> e(kT, Row(kT, zero));
    for (int i = 0; i < kT; ++i) {
      for (int j = 0; j < kT; ++j) {
        if (late || sees(i, j, padding)) e[size(i)][size(j)] = exp(s[size(i)][size(j)]);
      }
    }
    std::vector<Row> p(kT, Row(kT, zero));
    for (int line = 0; line < kT; ++line) {
      Recorded sum = zero;
      for (int at = 0; at < kT; ++at) sum = sum + (over_queries ? e[size(at)][size(line)] : e[size(line)][size(at)]);
      if (sum.value() == 0) continue;
      for (int at = 0; at < kT; ++at) {
        const int i = over_queries ? at : line, j = over_queries ? line : at;
        if (sees(i, j, padding)) p[size(i)][size(j)] = e[size(i)][size(j)] / sum;
      }
    }
    return p;
  }

  Trap trap_;
  std::vector<Recorded> weights_;
};

Sequence draw(Random& random) {
  Sequence sequence{{}, static_cast<int>(random.integer(0, 3))};
  for (int t = 0; t < kT; ++t) {
    const int token = static_cast<int>(random.integer(0, kAlphabet));
    sequence.tokens[static_cast<std::size_t>(t)] = t < sequence.padding ? kPad : token;
  }
  return sequence;
}

// Adam with its usual constants (Kingma & Ba, arXiv:1412.6980).
class Optimizer {
 public:
  explicit Optimizer(double rate) : rate_(rate), mean_(kParameters), square_(kParameters) {}

  void step(std::vector<double>& parameters, const std::vector<double>& gradient) {
    ++steps_;
    for (std::size_t at = 0; at < parameters.size(); ++at) {
      mean_[at] = 0.9 * mean_[at] + 0.1 * gradient[at];
      square_[at] = 0.999 * square_[at] + 0.001 * gradient[at] * gradient[at];
      const double mean = mean_[at] / (1 - std::pow(0.9, steps_)),
                   square = square_[at] / (1 - std::pow(0.999, steps_));
      parameters[at] -= rate_ * mean / (std::sqrt(square) + 1e-8);
    }
  }

 private:
  double rate_;
  int steps_ = 0;
  std::vector<double> mean_, square_;
};

}  // namespace

std::vector<double> train_with_trap(Trap trap, int steps, std::uint64_t seed) {
  Random random(seed);
  std::vector<double> parameters;
  for (int at = 0; at < kParameters; ++at) {
    const bool is_embedding = at < kQuery;
    parameters.push_back((is_embedding ? 0.5 : 1 / std::sqrt(static_cast<double>(kC))) * random.normal());
  }
  Optimizer optimizer(0.02);
  Tape tape;
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    tape.clear();
    const Model model(tape, parameters, trap);
    std::optional<Recorded> total;
    for (int b = 0; b < kBatch; ++b) {
      const Recorded loss = *model.loss(draw(random));
      total = total ? *total + loss : loss;
    }
    const Recorded mean = *total * (1.0 / kBatch);
    losses.push_back(mean.value());
    std::vector<double> gradient = tape.gradients(mean);
    gradient.resize(kParameters);
    optimizer.step(parameters, gradient);
  }
  return losses;
}

}  // namespace heedful::diagnosis
