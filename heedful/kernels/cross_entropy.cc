#include "heedful/kernels/cross_entropy.h"

#include <cmath>
#include <limits>
#include <vector>

#include "heedful/kernels/rows.h"
#include "heedful/kernels/sum.h"

namespace heedful {
namespace {

template <class T>
T weight_of(const View<const T, 1>& weights, Index n) {
  return weights.empty() ? T{1} : weights[n];
}

// Σ_n w[n], after every input has been checked.
template <class T>
double checked_weight(const CrossEntropyOutput<T>& output, const View<const T, 2>& logits,
                      std::span<const Index> targets, const View<const T, 1>& weights) {
  const Index rows = logits.extent(0), vocabulary = logits.extent(1);
  require(std::ssize(targets) == rows, "cross_entropy", "targets: expected {}, got {}", rows, targets.size());
  if (!weights.empty()) internal::require_shape("cross_entropy", "weights", weights, {rows});
  if (!output.dlogits.empty()) internal::require_same_shape("cross_entropy", "dlogits", output.dlogits, logits);
  if (!output.losses.empty()) internal::require_shape("cross_entropy", "losses", output.losses, {rows});
  double total = 0;
  for (Index n = 0; n < rows; ++n) {
    const T weight = weight_of(weights, n);
    require(std::isfinite(weight) && weight >= 0, "cross_entropy",
            "weights[{}]: expected a finite number of at least 0, got {}", n, weight);
    if (weight == 0) continue;
    const Index target = targets[static_cast<std::size_t>(n)];
    require(0 <= target && target < vocabulary, "cross_entropy", "targets[{}]: expected 0 to {}, got {}", n,
            vocabulary - 1, target);
    total += weight;
  }
  require(total > 0, "cross_entropy", "weights: expected a sum above 0, got {}", total);
  return total;
}

// The loss of one row; dlogits, when it has data, takes (softmax − onehot)·scale. Summing in double keeps the loss of
// a row that is all but certain: its other terms would drown in the 1 of the target.
template <class Logits, class Gradient>
double row_loss(const Logits& logits, const Gradient& dlogits, Index vocabulary, Index target, double scale) {
  using T = std::remove_cvref_t<decltype(dlogits[0])>;
  T maximum = -std::numeric_limits<T>::infinity();
  for (Index v = 0; v < vocabulary; ++v) maximum = logits[v] > maximum ? logits[v] : maximum;
  const double from_maximum = static_cast<double>(maximum) - static_cast<double>(logits[target]);
  if (dlogits.data == nullptr) {
    return from_maximum +
           std::log(internal::sum(vocabulary, [&](Index v) { return double{std::exp(logits[v] - maximum)}; }));
  }
  for (Index v = 0; v < vocabulary; ++v) dlogits[v] = std::exp(logits[v] - maximum);
  const double total = internal::sum(vocabulary, [&](Index v) { return double{dlogits[v]}; });
  const T divisor = static_cast<T>(total), factor = static_cast<T>(scale);
  for (Index v = 0; v < vocabulary; ++v) dlogits[v] /= divisor;
  dlogits[target] -= 1;
  for (Index v = 0; v < vocabulary; ++v) dlogits[v] *= factor;
  return from_maximum + std::log(total);
}

}  // namespace

template <class T>
double cross_entropy(const Context& context, const CrossEntropyOutput<T>& output, In<T, 2> logits,
                     std::span<const Index> targets, In<T, 1> weights) {
  const double total_weight = checked_weight<T>(output, logits, targets, weights);
  const Index rows = logits.extent(0), vocabulary = logits.extent(1);
  const View<T, 2>& dlogits = output.dlogits;

  const auto weighted_loss = [&](Index n) {
    const double weight = weight_of<T>(weights, n);
    double loss = 0;
    if (weight > 0) {
      loss = internal::when_contiguous(
          [&](auto contiguous) {
            const internal::Row<decltype(contiguous), T> gradient{
                dlogits.empty() ? nullptr : dlogits.data() + n * dlogits.stride(0), dlogits.stride(1)};
            return row_loss(internal::row(contiguous, logits, n), gradient, vocabulary,
                            targets[static_cast<std::size_t>(n)], weight / total_weight);
          },
          logits.stride(1), dlogits.empty() ? Index{1} : dlogits.stride(1));
    } else if (!dlogits.empty()) {
      for (Index v = 0; v < vocabulary; ++v) dlogits(n, v) = 0;
    }
    if (!output.losses.empty()) output.losses[n] = loss;
    return weight * loss;
  };

  double sum = 0;
  if (context.threads() == 1) {
    for (Index n = 0; n < rows; ++n) sum += weighted_loss(n);
  } else {
    std::vector<double> losses(static_cast<std::size_t>(rows));
    internal::for_rows(context, rows, vocabulary, [&](Index begin, Index end) {
      for (Index n = begin; n < end; ++n) losses[static_cast<std::size_t>(n)] = weighted_loss(n);
    });
    for (const double loss : losses) sum += loss;
  }
  return sum / total_weight;
}

#define HEEDFUL_INSTANTIATE(T)                                                                                     \
  template double cross_entropy<T>(const Context&, const CrossEntropyOutput<T>&, In<T, 2>, std::span<const Index>, \
                                   In<T, 1>);
HEEDFUL_INSTANTIATE(float)
HEEDFUL_INSTANTIATE(double)
#undef HEEDFUL_INSTANTIATE

}  // namespace heedful
