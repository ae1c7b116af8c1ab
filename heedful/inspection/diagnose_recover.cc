#include "heedful/inspection/diagnose_recover.h"

#include <algorithm>
#include <cmath>

namespace heedful::diagnosis {
namespace {

// Beyond this condition number the recovered weights would be rounding and nothing else.
constexpr double kWorstCondition = 1e3;

// A thin QR factorisation of A = vᵀ [E, Tk] by modified Gram–Schmidt, to solve vᵀ·w = out by least squares.
class LeastSquares {
 public:
  LeastSquares(const Tensor<double, 4>& v, Index b, Index g)
      : keys_(v.extent(2)), width_(v.extent(3)), q_({keys_, width_}), r_({keys_, keys_}) {
    double largest = 0, smallest = HUGE_VAL;
    for (Index j = 0; j < keys_; ++j) {
      for (Index e = 0; e < width_; ++e) q_(j, e) = v(b, g, j, e);
      for (Index earlier = 0; earlier < j; ++earlier) {
        r_(earlier, j) = dot(earlier, &q_(j, 0));
        for (Index e = 0; e < width_; ++e) q_(j, e) -= r_(earlier, j) * q_(earlier, e);
      }
      r_(j, j) = std::sqrt(dot(j, &q_(j, 0)));
      for (Index e = 0; e < width_; ++e) q_(j, e) /= r_(j, j);
      largest = std::max(largest, r_(j, j));
      smallest = std::min(smallest, r_(j, j));
    }
    condition_ = smallest > 0 ? largest / smallest : HUGE_VAL;
    inverse_size_ = 1 / smallest;
  }

  double condition() const { return condition_; }
  double inverse_size() const { return inverse_size_; }

  void solve(double* weights, const double* out) const {
    for (Index j = keys_ - 1; j >= 0; --j) {
      weights[j] = dot(j, out);
      for (Index later = j + 1; later < keys_; ++later) weights[j] -= r_(j, later) * weights[later];
      weights[j] /= r_(j, j);
    }
  }

 private:
  double dot(Index row, const double* other) const {
    double sum = 0;
    for (Index e = 0; e < width_; ++e) sum += q_(row, e) * other[e];
    return sum;
  }

  Index keys_, width_;
  Tensor<double, 2> q_, r_;  // columns of Q as rows
  double condition_ = 0, inverse_size_ = 0;
};

bool is_finite(const Tensor<double, 4>& x) {
  return std::all_of(x.begin(), x.end(), [](double value) { return std::isfinite(value); });
}

}  // namespace

std::optional<RecoveredWeights> recover_weights(const Walk& correct, const AttentionAnswer& answer) {
  const Walk& w = correct;
  RecoveredWeights result;
  if (is_given(answer.weights)) {
    if (!is_finite(answer.weights)) return std::nullopt;
    result.weights = answer.weights.copy();
    result.error = kFits * *std::max_element(w.weight_error.begin(), w.weight_error.end());
    return result;
  }
  if (w.E < w.Tk || !is_finite(answer.out) || !is_finite(w.v)) return std::nullopt;
  result.weights = Tensor<double, 4>(w.weights.extents());
  const double out_error = *std::max_element(w.out_error.begin(), w.out_error.end());
  for (Index b = 0; b < w.B; ++b) {
    for (Index g = 0; g < w.G; ++g) {
      const LeastSquares system(w.v, b, g);
      if (system.condition() > kWorstCondition) return std::nullopt;
      result.error =
          std::max(result.error, kFits * out_error * system.inverse_size() * std::sqrt(static_cast<double>(w.E)));
      for (Index h = g * (w.H / w.G); h < (g + 1) * (w.H / w.G); ++h) {
        for (Index i = 0; i < w.Tq; ++i) system.solve(&result.weights(b, h, i, 0), &answer.out(b, h, i, 0));
      }
    }
  }
  return result;
}

std::string describe_weights(const Walk& correct, const AttentionAnswer& answer) {
  const std::optional<RecoveredWeights> recovered = recover_weights(correct, answer);
  if (!recovered) return {};
  double least = HUGE_VAL, most = -HUGE_VAL, hidden = 0;
  Index negative = 0;
  for (Index row = 0; row < correct.lse.size(); ++row) {
    double sum = 0;
    for (Index j = 0; j < correct.Tk; ++j) {
      const double weight = recovered->weights.data()[row * correct.Tk + j];
      sum += weight;
      negative += weight < -recovered->error;
      if (!correct.visible.data()[row * correct.Tk + j]) hidden = std::max(hidden, std::abs(weight));
    }
    least = std::min(least, sum);
    most = std::max(most, sum);
  }
  return fmt::format("{}: rows sum to {:.4g} … {:.4g}, hidden keys hold up to {:.2g}, {} negative",
                     is_given(answer.weights) ? "as answered" : "recovered from the output", least, most,
                     hidden > recovered->error ? hidden : 0.0, negative);
}

std::optional<Dropout> find_dropout(const Walk& correct, const AttentionAnswer& answer) {
  const std::optional<RecoveredWeights> recovered = recover_weights(correct, answer);
  if (!recovered) return std::nullopt;
  std::vector<double> factors;
  Index dropped = 0;
  for (Index at = 0; at < correct.weights.size(); ++at) {
    const double right = correct.weights.data()[at], got = recovered->weights.data()[at];
    if (std::abs(got) > recovered->error && right <= recovered->error) return std::nullopt;
    if (right <= 100 * recovered->error) continue;  // too small to tell kept from dropped
    if (std::abs(got) > recovered->error) {
      factors.push_back(got / right);
    } else {
      ++dropped;
    }
  }
  if (dropped == 0 || factors.size() < 4) return std::nullopt;
  std::ranges::nth_element(factors, factors.begin() + static_cast<std::ptrdiff_t>(factors.size() / 2));
  const double factor = factors[factors.size() / 2];
  constexpr double kLeastRate = 0.01;  // what hides keys for good leaves the others as they are
  if (1 - 1 / factor < kLeastRate) return std::nullopt;
  Dropout result{1 - 1 / factor, 0};
  for (Index at = 0; at < correct.weights.size(); ++at) {
    const double right = correct.weights.data()[at], got = recovered->weights.data()[at];
    if (std::abs(got) <= recovered->error) continue;
    result.residual = std::max(result.residual, std::abs(got - factor * right) / recovered->error);
  }
  if (result.residual > kFits) return std::nullopt;
  return result;
}

}  // namespace heedful::diagnosis
