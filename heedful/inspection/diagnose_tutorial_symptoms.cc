#include "heedful/inspection/diagnose_tutorial_symptoms.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heedful/core/random.h"
#include "heedful/inspection/diagnose_hypotheses.h"
#include "heedful/inspection/diagnose_shrink.h"

namespace heedful::diagnosis {
namespace {

constexpr int kSteps = 240;

Tensor<double, 4> normals(Random& random, const Extents<4>& extents) {
  Tensor<double, 4> x(extents);
  for (double& value : x) value = random.normal();
  return x;
}

AttentionCase attention_case(std::uint64_t seed, Index H, Index T, Index width) {
  Random random(seed);
  AttentionCase c;
  c.declared.type = DataType::f64;
  c.q = normals(random, {2, H, T, width});
  c.k = normals(random, {2, H, T, width});
  c.v = normals(random, {2, H, T, width});
  return c;
}

// The recipe that the trap leaves: right for those that are not in the attention.
Hypothesis hypothesis_of(Trap trap) {
  switch (trap) {
    case Trap::scale_missing:
      return {{{&find_fault("scale_missing"), 0}}, {}};
    case Trap::mask_after_softmax:
      return {{{&find_fault("mask_after_softmax"), 0}}, {}};
    case Trap::heads_merged_untransposed:
      return {{{&find_fault("heads_merged_untransposed"), 0}}, {}};
    case Trap::padding_missing:
      return {{{&find_fault("padding_missing"), 0}}, {}};
    case Trap::padding_on_queries:
      return {{{&find_fault("padding_on_queries"), 0}}, {}};
    case Trap::softmax_over_queries:
      return {{{&find_fault("softmax_over_queries"), 0}}, {}};
    case Trap::position_missing:
      return {{{&find_fault("position_missing"), 0}}, {}};
    default:
      return {};
  }
}

struct Attended {
  Tensor<double, 4> out, weights;
};

Attended attend(const AttentionCase& given, Trap trap) {
  const Recipe recipe = hypothesis_of(trap).recipe(given.declared);
  Walk walked = walk(given, recipe);
  return {std::move(walked.out), std::move(walked.weights)};
}

AttentionCase padded_case(std::uint64_t seed) {
  AttentionCase c = attention_case(seed, 2, 6, 4);
  c.declared.key_lengths = {6, 4};
  return c;
}

std::string row_sums(std::uint64_t seed, Trap trap) {
  AttentionCase c = attention_case(seed, 2, 6, 4);
  c.declared.causal = true;
  const Tensor<double, 4> weights = attend(c, trap).weights;
  double least = HUGE_VAL, most = 0;
  for (Index row = 0; row < weights.size() / 6; ++row) {
    const double sum = std::accumulate(weights.data() + row * 6, weights.data() + row * 6 + 6, 0.0);
    least = std::min(least, sum);
    most = std::max(most, sum);
  }
  return fmt::format("{:.3f} … {:.3f}", least, most);
}

std::string column_sums(std::uint64_t seed, Trap trap) {
  const Tensor<double, 4> weights = attend(attention_case(seed, 2, 6, 4), trap).weights;
  double least = HUGE_VAL, most = 0;
  for (Index head = 0; head < 4; ++head) {
    for (Index j = 0; j < 6; ++j) {
      double sum = 0;
      for (Index i = 0; i < 6; ++i) sum += weights.data()[head * 36 + i * 6 + j];
      least = std::min(least, sum);
      most = std::max(most, sum);
    }
  }
  return fmt::format("{:.3f} … {:.3f}", least, most);
}

std::string largest_weight(std::uint64_t seed, Trap trap) {
  const Tensor<double, 4> weights = attend(attention_case(seed, 2, 32, 64), trap).weights;
  const Index rows = weights.size() / 32;
  double sum = 0;
  for (Index row = 0; row < rows; ++row) {
    sum += *std::max_element(weights.data() + row * 32, weights.data() + row * 32 + 32);
  }
  return fmt::format("{:.3f}", sum / static_cast<double>(rows));
}

// Sequence 1 holds four real keys. Its real rows alone, against the same rows in the batch.
std::string alone_against_batch(std::uint64_t seed, Trap trap) {
  const AttentionCase batch = padded_case(seed);
  AttentionCase alone = without(without(without(batch, Axis::batch, 0, 1), Axis::key, 4, 6), Axis::query, 4, 6);
  const Tensor<double, 4> together = attend(batch, trap).out, apart = attend(alone, trap).out;
  double most = 0;
  for (Index h = 0; h < 2; ++h) {
    for (Index i = 0; i < 4; ++i) {
      for (Index e = 0; e < 4; ++e) most = std::max(most, std::abs(together(1, h, i, e) - apart(0, h, i, e)));
    }
  }
  return fmt::format("{:.3f}", most);
}

// Values in head 0 alone: how much of the output is then found in head 1.
std::string foreign_share(std::uint64_t seed, Trap trap) {
  AttentionCase c = attention_case(seed, 2, 6, 4);
  for (Index b = 0; b < 2; ++b) std::fill_n(&c.v(b, 1, 0, 0), 24, 0.0);
  const Tensor<double, 4> out = attend(c, trap).out;
  double foreign = 0, all = 0;
  for (Index at = 0; at < out.size(); ++at) {
    all += std::abs(out.data()[at]);
    if (at / 24 % 2 == 1) foreign += std::abs(out.data()[at]);
  }
  return fmt::format("{:.0f} %", 100 * foreign / all);
}

// Exchanging two tokens, positions staying: how far the outputs are from merely exchanged.
std::string permutation(std::uint64_t seed, Trap trap) {
  AttentionCase c = attention_case(seed, 2, 6, 4);
  c.declared.rotary = {RotaryLayout::half_split, 100, 0};
  for (Index b = 0; b < 2; ++b) {
    for (Index t = 0; t < 6; ++t) {
      c.declared.query_positions.push_back(t);
      c.declared.key_positions.push_back(t);
    }
  }
  const auto swap = [](Tensor<double, 4>& x) {
    for (Index head = 0; head < 4; ++head) {
      std::swap_ranges(x.data() + head * 24, x.data() + head * 24 + 4, x.data() + head * 24 + 16);
    }
  };
  Tensor<double, 4> expected = attend(c, trap).out;
  swap(expected);
  for (Tensor<double, 4>* x : {&c.q, &c.k, &c.v}) swap(*x);
  const Tensor<double, 4> out = attend(c, trap).out;
  double most = 0;
  for (Index at = 0; at < out.size(); ++at) most = std::max(most, std::abs(out.data()[at] - expected.data()[at]));
  return fmt::format("{:.3f}", most);
}

// A sum of 200 ReLUs: its exact slope against a central difference of step ε.
std::string gradient_check(std::uint64_t seed, double step) {
  Random random(seed);
  double worst = 0;
  std::vector<double> slopes, offsets;
  for (int unit = 0; unit < 200; ++unit) {
    slopes.push_back(random.normal());
    offsets.push_back(random.normal());
  }
  const auto value = [&](double x) {
    double sum = 0;
    for (std::size_t unit = 0; unit < slopes.size(); ++unit) sum += std::max(0.0, slopes[unit] * x + offsets[unit]);
    return sum;
  };
  for (int trial = 0; trial < 20; ++trial) {
    const double x = random.normal();
    double exact = 0;
    for (std::size_t unit = 0; unit < slopes.size(); ++unit) {
      if (slopes[unit] * x + offsets[unit] > 0) exact += slopes[unit];
    }
    const double difference = (value(x + step) - value(x - step)) / (2 * step);
    worst = std::max(worst, std::abs(difference - exact) / std::max(1.0, std::abs(exact)));
  }
  return fmt::format("step {:.0e}, worst error {:.0e}", step, worst);
}

// The key with the largest weight holds values near the mean of the others; a lighter key holds far ones.
std::string claim(std::uint64_t seed, bool is_made) {
  Random random(seed);
  const std::vector<double> weights = {0.05, 0.6, 0.15, 0.2}, values = {0, 1 + 0.1 * random.normal(), 3, -0.2};
  const auto without_key = [&](std::size_t removed) {
    double sum = 0, total = 0;
    for (std::size_t j = 0; j < weights.size(); ++j) {
      if (j != removed) sum += weights[j] * values[j], total += weights[j];
    }
    return sum / total;
  };
  const double whole = std::inner_product(weights.begin(), weights.end(), values.begin(), 0.0);
  if (!is_made) return fmt::format("removing key 2 moves it by {:.2f}", std::abs(without_key(2) - whole));
  const double heaviest = std::abs(without_key(1) - whole), other = std::abs(without_key(2) - whole);
  return fmt::format("\"key 1 decided: weight 0.60\"; removing 1: {:.2f}, 2: {:.2f}", heaviest, other);
}

}  // namespace

Symptoms measure_symptoms(Trap trap, std::uint64_t seed) {
  Symptoms result;
  result.right_losses = train_with_trap(Trap::none, kSteps, seed);
  result.losses = train_with_trap(trap, kSteps, seed);
  const auto add = [&](std::string what, std::string (*measure)(std::uint64_t, Trap)) {
    result.measured.push_back({std::move(what), measure(seed, Trap::none), measure(seed, trap)});
  };
  add("row sums, causal", row_sums);
  add("column sums, no mask", column_sums);
  add("mean largest weight, width 64", largest_weight);
  add("alone and in a batch, differs by", alone_against_batch);
  add("values of head 0 found in head 1", foreign_share);
  add("not merely exchanged with two tokens", permutation);
  result.measured.push_back(
      {"gradient check", gradient_check(seed, 1e-6), gradient_check(seed, trap == Trap::gradient_step ? 0.1 : 1e-6)});
  result.measured.push_back({"what the report says", claim(seed, false), claim(seed, trap == Trap::explanation)});
  const Tensor<double, 4> weights = attend(padded_case(seed), trap).weights;
  for (Index i = 0; i < 6; ++i) result.heat_map.emplace_back(&weights(1, 0, i, 0), &weights(1, 0, i, 0) + 6);
  return result;
}

}  // namespace heedful::diagnosis
