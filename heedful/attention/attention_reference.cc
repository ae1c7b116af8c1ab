#include "heedful/attention/attention_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include "heedful/attention/attention_shapes.h"
#include "heedful/attention/mask.h"
#include "heedful/core/error.h"

namespace heedful {
namespace {

constexpr std::string_view kWhere = "attention_reference";
constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class T>
double finite(T value, std::string_view name, const Extents<4>& place) {
  if (!std::isfinite(value)) {
    fail(kWhere, "{}{}: expected a finite number, got {}", name, shape_text(place), static_cast<double>(value));
  }
  return static_cast<double>(value);
}

template <class T>
double element(const View<const T, 4>& view, std::string_view name, Index a, Index b, Index c, Index d) {
  return finite(view(a, b, c, d), name, {a, b, c, d});
}

struct ReferenceKey {
  Index j;
  double raw;     // scale · q·k
  double score;   // what enters the softmax
  double weight;  // P(i, j)
};

struct ReferenceRow {
  std::vector<ReferenceKey> keys;  // the visible ones, ascending
  double row_max = -kInfinity;
  double row_sum = 0;
};

// The formula of attention.h for one query, from the scores to the weights.
template <class T>
class Reference {
 public:
  Reference(const AttentionInputs<T>& inputs, const AttentionOptions<T>& options)
      : shape(check_attention(inputs, options)), inputs_(inputs), options_(options), mask_(shape, options) {
    refuse_cache(inputs);
    if (options.empty_row == EmptyRow::refuse) mask_.refuse_empty_rows();
    if (!options.bias.empty()) bias_ = broadcast(options.bias, {shape.B, shape.H, shape.Tq, shape.Tk});
  }

  double scale() const { return score_scale(shape, options_); }
  double q(Index b, Index h, Index i, Index d) const { return element(inputs_.q, "q", b, h, i, d); }
  double k(Index b, Index h, Index j, Index d) const { return element(inputs_.k, "k", b, shape.kv_head(h), j, d); }
  double v(Index b, Index h, Index j, Index e) const { return element(inputs_.v, "v", b, shape.kv_head(h), j, e); }

  ReferenceRow row(Index b, Index h, Index i) const {
    ReferenceRow row;
    for (Index j = 0; j < shape.Tk; ++j) {
      if (!mask_.sees(b, h, i, j)) continue;
      const double raw = raw_score(b, h, i, j), score = final_score(raw, b, h, i, j);
      finite(score, "score", {b, h, i, j});
      row.keys.push_back({.j = j, .raw = raw, .score = score, .weight = 0});
      row.row_max = std::max(row.row_max, score);
    }
    for (const ReferenceKey& key : row.keys) row.row_sum += std::exp(key.score - row.row_max);
    for (ReferenceKey& key : row.keys) key.weight = std::exp(key.score - row.row_max) / row.row_sum;
    return row;
  }

  double cap_slope(double raw) const {  // d(capped score)/d(raw score)
    if (options_.softcap == 0) return 1;
    const double t = std::tanh(raw / options_.softcap);
    return 1 - t * t;
  }

  const AttentionShape shape;

 private:
  double raw_score(Index b, Index h, Index i, Index j) const {
    double product = 0;
    for (Index d = 0; d < shape.D; ++d) product += q(b, h, i, d) * k(b, h, j, d);
    return scale() * product;
  }
  double final_score(double raw, Index b, Index h, Index i, Index j) const {
    double score = raw;
    if (options_.softcap > 0) score = options_.softcap * std::tanh(raw / options_.softcap);
    if (!bias_.empty()) score += element(bias_, "bias", b, h, i, j);
    if (!options_.alibi_slopes.empty()) {
      score -= options_.alibi_slopes[h] * std::abs(static_cast<double>(mask_.position(b, i) - j));
    }
    return score;
  }

  const AttentionInputs<T>& inputs_;
  const AttentionOptions<T>& options_;
  AttentionMask<T> mask_;
  View<const T, 4> bias_;  // [B, H, Tq, Tk]
};

void write_row(const AttentionOutputs<double>& outputs, const ReferenceRow& row, Index Tk, Index b, Index h,
               Index i) {
  if (!outputs.row_max.empty()) {
    outputs.row_max(b, h, i) = row.row_max;
    outputs.row_sum(b, h, i) = row.row_sum;
  }
  if (!outputs.log_sum_exp.empty()) {
    outputs.log_sum_exp(b, h, i) = row.keys.empty() ? -kInfinity : row.row_max + std::log(row.row_sum);
  }
  for (Index j = 0; j < Tk; ++j) {
    if (!outputs.weights.empty()) outputs.weights(b, h, i, j) = 0;
    if (!outputs.scores.empty()) outputs.scores(b, h, i, j) = -kInfinity;
  }
  for (const ReferenceKey& key : row.keys) {
    if (!outputs.weights.empty()) outputs.weights(b, h, i, key.j) = key.weight;
    if (!outputs.scores.empty()) outputs.scores(b, h, i, key.j) = key.score;
  }
}

void fill(const View<double, 4>& view, double value) {
  for (Index a = 0; a < view.extent(0); ++a) {
    for (Index b = 0; b < view.extent(1); ++b) {
      for (Index c = 0; c < view.extent(2); ++c) {
        for (Index d = 0; d < view.extent(3); ++d) view(a, b, c, d) = value;
      }
    }
  }
}

// The extents of gradients in double against inputs of any type.
template <class T>
void check_gradients(const AttentionShape& shape, const AttentionGradients<double>& gradients, In<T, 4> dout,
                     const AttentionOptions<T>& options) {
  const auto expect = [](const View<const double, 4>& view, std::string_view name, const Extents<4>& expected) {
    if (view.extents() != expected) {
      fail(kWhere, "{}: expected {}, got {}", name, shape_text(expected), shape_text(view.extents()));
    }
  };
  const auto& [B, Tq, Tk, H, G, D, E] = shape;
  expect(gradients.dq, "dq", {B, H, Tq, D});
  expect(gradients.dk, "dk", {B, G, Tk, D});
  expect(gradients.dv, "dv", {B, G, Tk, E});
  if (!gradients.dbias.empty()) expect(gradients.dbias, "dbias", options.bias.extents());
  require(dout.extents() == Extents<4>{B, H, Tq, E}, kWhere, "dout: expected {}, got {}",
          shape_text(Extents<4>{B, H, Tq, E}), shape_text(dout.extents()));
}

}  // namespace

template <class T>
void attention_reference_forward(const AttentionOutputs<double>& outputs, const AttentionInputs<T>& inputs,
                                 const AttentionOptions<T>& options) {
  const Reference<T> reference(inputs, options);
  const auto& [B, Tq, Tk, H, G, D, E] = reference.shape;
  check_outputs(reference.shape, outputs);
  for (Index b = 0; b < B; ++b) {
    for (Index h = 0; h < H; ++h) {
      for (Index i = 0; i < Tq; ++i) {
        const ReferenceRow row = reference.row(b, h, i);
        for (Index e = 0; e < E; ++e) {
          double mixed = 0;
          for (const ReferenceKey& key : row.keys) mixed += key.weight * reference.v(b, h, key.j, e);
          outputs.out(b, h, i, e) = mixed;
        }
        write_row(outputs, row, Tk, b, h, i);
      }
    }
  }
}

template <class T>
void attention_reference_backward(const AttentionGradients<double>& gradients, In<T, 4> dout,
                                  const AttentionInputs<T>& inputs, const AttentionOptions<T>& options) {
  const Reference<T> reference(inputs, options);
  const auto& [B, Tq, Tk, H, G, D, E] = reference.shape;
  check_gradients<T>(reference.shape, gradients, dout, options);
  const auto& [dq, dk, dv, given_dbias] = gradients;
  View<double, 4> dbias = given_dbias;
  if (!dbias.empty()) dbias = broadcast(dbias, {B, H, Tq, Tk});
  fill(dq, 0);
  fill(dk, 0);
  fill(dv, 0);
  const double scale = reference.scale();
  for (Index b = 0; b < B; ++b) {
    for (Index h = 0; h < H; ++h) {
      const Index g = reference.shape.kv_head(h);
      for (Index i = 0; i < Tq; ++i) {
        const ReferenceRow row = reference.row(b, h, i);
        std::vector<double> dweights;  // dP
        double mean = 0;               // Σ_l P(i,l)·dP(i,l)
        for (const ReferenceKey& key : row.keys) {
          double dweight = 0;
          for (Index e = 0; e < E; ++e) {
            dweight += element(dout, "dout", b, h, i, e) * reference.v(b, h, key.j, e);
          }
          dweights.push_back(dweight);
          mean += key.weight * dweight;
        }
        for (std::size_t n = 0; n < row.keys.size(); ++n) {
          const ReferenceKey& key = row.keys[n];
          const double dscore = key.weight * (dweights[n] - mean), draw = dscore * reference.cap_slope(key.raw);
          if (!dbias.empty()) dbias(b, h, i, key.j) += dscore;
          for (Index d = 0; d < D; ++d) {
            dq(b, h, i, d) += scale * draw * reference.k(b, h, key.j, d);
            dk(b, g, key.j, d) += scale * draw * reference.q(b, h, i, d);
          }
          for (Index e = 0; e < E; ++e) dv(b, g, key.j, e) += key.weight * element(dout, "dout", b, h, i, e);
        }
      }
    }
  }
}

#define HEEDFUL_INSTANTIATE(T)                                                                             \
  template void attention_reference_forward<T>(const AttentionOutputs<double>&, const AttentionInputs<T>&, \
                                               const AttentionOptions<T>&);                                \
  template void attention_reference_backward<T>(const AttentionGradients<double>&, In<T, 4>,               \
                                                const AttentionInputs<T>&, const AttentionOptions<T>&);
HEEDFUL_INSTANTIATE(float)
HEEDFUL_INSTANTIATE(double)
#undef HEEDFUL_INSTANTIATE

}  // namespace heedful
