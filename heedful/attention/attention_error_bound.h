// Test support: how far rounding alone may take a working path of attention, in type T, from the reference. u is half
// a unit in the last place of T, n the number of visible keys, N that of the rows that add into a key.
//
//     score      δ(j) = u·((D + 11)·|scale|·Σ|q||k| + 4·|bias| + 4·|ALiBi|)     D products, the scale, the softcap's
//                                                                               quotient, tanh and product, two sums
//     weight     |ΔP| ≤ P·ρ,  ρ = e^(2δ + 2u·(max − min score)) − 1 + (n + 8)·u  with the largest δ of the row
//     output     Σ_j P·|v|·(ρ + (n + 2)·u)
//     dS         |Δ| ≤ P·(A + M)·τ,  τ = (1 + ρ)·(2ρ + (n + E + 8)·u),  A(j) = Σ_e |dout||v(j)|,  M = Σ_j P·A
//     softcap    adds κ(j) = 2·u·(D + 3)·|scale|·Σ|q||k| / softcap + 13·u to τ
//     dq, dk     |scale|·Σ P·(A + M)·(τ + κ + (n or N + 4)·u)·|k or q|
//     dv         Σ P·|dout|·(ρ + (N + 2)·u)
//
// Everything is doubled, since in double the reference rounds as well, and 64 of the smallest normal numbers are
// added for what underflows.
#ifndef HEEDFUL_ATTENTION_ATTENTION_ERROR_BOUND_H_
#define HEEDFUL_ATTENTION_ATTENTION_ERROR_BOUND_H_

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "heedful/attention/attention_test_case.h"

namespace heedful {

// The bounds, laid out as the results they bound. row_sum is bounded through log_sum_exp.
template <class T>
AttentionResults<double> rounding_bounds(const AttentionCase<T>& c, const AttentionResults<double>& reference) {
  constexpr double u = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
  constexpr double kUnderflow = 64 * static_cast<double>(std::numeric_limits<T>::min());
  const auto& [B, Tq, Tk, H, G, D, E] = c.shape;
  const double rows = static_cast<double>(Tq * (H / G)), d_products = static_cast<double>(D);
  const double scale = std::abs(score_scale(c.shape, c.settings));
  const auto magnitude = [](T x) { return std::abs(static_cast<double>(x)); };
  AttentionResults<double> bounds(c.shape, c.bias.extents());
  for (Index b = 0; b < B; ++b) {
    for (Index h = 0; h < H; ++h) {
      const Index g = c.shape.kv_head(h);
      for (Index i = 0; i < Tq; ++i) {
        std::vector<Index> keys;
        for (Index j = 0; j < Tk; ++j) {
          if (reference.scores(b, h, i, j) != -std::numeric_limits<double>::infinity()) keys.push_back(j);
        }
        const double n = static_cast<double>(keys.size());
        std::vector<double> products(static_cast<std::size_t>(Tk)), dot(products), a(products);
        double delta = 0, spread = 0, m = 0;
        for (Index j : keys) {
          const std::size_t at = static_cast<std::size_t>(j);
          for (Index d = 0; d < D; ++d) dot[at] += scale * magnitude(c.q(b, h, i, d)) * magnitude(c.k(b, g, j, d));
          for (Index e = 0; e < E; ++e) a[at] += magnitude(c.dout(b, h, i, e)) * magnitude(c.v(b, g, j, e));
          m += reference.weights(b, h, i, j) * a[at];
          double score = u * (d_products + 11) * dot[at];
          if (c.bias.size() > 0) {
            score += 4 * u * magnitude(c.bias(b % c.bias.extent(0), h % c.bias.extent(1), i, j));
          }
          if (c.alibi_slopes.size() > 0) {  // positions and offsets lie within ±2·(Tq + Tk)
            score += 4 * u * std::abs(c.alibi_slopes(h)) * static_cast<double>(2 * (Tq + Tk));
          }
          bounds.scores(b, h, i, j) = 2 * score;
          delta = std::max(delta, score);
          spread = std::max(spread, reference.row_max(b, h, i) - reference.scores(b, h, i, j));
        }
        spread = std::min(spread, 800.0);  // e^−800 is 0
        const double rho = std::expm1(2 * delta + 2 * u * spread) + (n + 8) * u;
        const double tau = (1 + rho) * (2 * rho + (n + static_cast<double>(E) + 8) * u);
        bounds.row_max(b, h, i) = 2 * delta;
        bounds.log_sum_exp(b, h, i) =
            keys.empty() ? 0 : 2 * (delta + rho + 4 * u * std::abs(reference.log_sum_exp(b, h, i)));
        bounds.row_sum(b, h, i) = 2 * rho * reference.row_sum(b, h, i);
        for (Index j : keys) {
          const std::size_t at = static_cast<std::size_t>(j);
          const double weight = reference.weights(b, h, i, j);
          bounds.weights(b, h, i, j) = 2 * weight * rho + kUnderflow;
          const double cap = c.settings.softcap;
          const double kappa = cap > 0 ? 2 * u * (d_products + 3) * dot[at] / cap + 13 * u : 0;
          const double dscore = 2 * (a[at] + m) * (weight * tau + kUnderflow);
          const double draw = 2 * scale * (a[at] + m) * (weight * (tau + kappa) + kUnderflow);
          const double after = 2 * scale * (a[at] + m) * weight * u;
          for (Index e = 0; e < E; ++e) {
            bounds.out(b, h, i, e) += 2 * magnitude(c.v(b, g, j, e)) * (weight * (rho + (n + 2) * u) + kUnderflow);
            bounds.dv(b, g, j, e) +=
                2 * magnitude(c.dout(b, h, i, e)) * (weight * (rho + (rows + 2) * u) + kUnderflow);
          }
          for (Index d = 0; d < D; ++d) {
            bounds.dq(b, h, i, d) += (draw + (n + 4) * after) * magnitude(c.k(b, g, j, d)) + kUnderflow;
            bounds.dk(b, g, j, d) += (draw + (rows + 4) * after) * magnitude(c.q(b, h, i, d)) + kUnderflow;
          }
          if (c.bias.size() > 0) {
            bounds.dbias(b % c.bias.extent(0), h % c.bias.extent(1), i, j) +=
                dscore + 2 * (a[at] + m) * weight * static_cast<double>(B * H) * u;
          }
        }
      }
    }
  }
  return bounds;
}

// The largest |result − reference| / bound over everything, and where; a NaN counts as infinite.
struct WorstError {
  double ratio = 0;
  std::string where;
};
template <class T>
WorstError worst_error(const AttentionResults<T>& results, const AttentionResults<double>& reference,
                       const AttentionResults<double>& bounds) {
  WorstError worst;
  const auto compare = [&worst](const auto& got, const auto& expected, const auto& bound, const char* name) {
    for (Index n = 0; n < got.size(); ++n) {
      const double x = static_cast<double>(got.data()[n]), y = expected.data()[n];
      if (x == y) continue;
      const double ratio = std::abs(x - y) / bound.data()[n];
      if (!(ratio <= worst.ratio)) {
        worst = {std::isnan(ratio) ? std::numeric_limits<double>::infinity() : ratio,
                 fmt::format("{}[{}]: expected {}, got {}", name, n, y, x)};
      }
    }
  };
  compare(results.out, reference.out, bounds.out, "out");
  compare(results.weights, reference.weights, bounds.weights, "weights");
  compare(results.scores, reference.scores, bounds.scores, "scores");
  compare(results.row_max, reference.row_max, bounds.row_max, "row_max");
  compare(results.row_sum, reference.row_sum, bounds.row_sum, "row_sum");
  compare(results.log_sum_exp, reference.log_sum_exp, bounds.log_sum_exp, "log_sum_exp");
  compare(results.dq, reference.dq, bounds.dq, "dq");
  compare(results.dk, reference.dk, bounds.dk, "dk");
  compare(results.dv, reference.dv, bounds.dv, "dv");
  compare(results.dbias, reference.dbias, bounds.dbias, "dbias");
  return worst;
}

}  // namespace heedful

#endif  // HEEDFUL_ATTENTION_ATTENTION_ERROR_BOUND_H_
