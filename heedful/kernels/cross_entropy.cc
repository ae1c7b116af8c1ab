#include "heedful/kernels/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "heedful/kernels/dense_rows.h"
#include "heedful/kernels/rows.h"
#include "heedful/kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heedful/kernels/cross_entropy.cc"
#include "hwy/foreach_target.h"  // first: it includes this file once a target

#include "heedful/kernels/row_math-inl.h"
#include "heedful/kernels/vector_math-inl.h"

#ifndef HEEDFUL_KERNELS_CROSS_ENTROPY_WORK_
#define HEEDFUL_KERNELS_CROSS_ENTROPY_WORK_
namespace heedful {

template <class T>
struct CrossEntropyWork {
  internal::Rows<const T> logits;
  internal::Rows<T> dlogits;  // none where they are not wanted
  Index vocabulary;
  const Index* targets;
  View<const T, 1> weights;  // empty where all are 1
  double total_weight;
  double* losses;  // of rows from `first` on
  Index first;

  double weight(Index n) const { return weights.empty() ? 1.0 : static_cast<double>(weights[n]); }
};

}  // namespace heedful
#endif

HWY_BEFORE_NAMESPACE();
namespace heedful {
namespace HWY_NAMESPACE {

// With c elements equal to the maximum m and R = Σ exp(x − m) over the others, Σ exp(x − m) = c + R. Kept apart, R
// does not drown in the 1 of the maximum, and a row that is all but certain keeps its small loss, log(1 + R), and its
// small gradient, −R/(1 + R), to the last digit.
template <class T>
double LossOfRow(const CrossEntropyWork<T>& work, Index n) {
  const hn::ScalableTag<T> d;
  const T* logits = work.logits[n];
  T* dlogits = work.dlogits ? work.dlogits[n] : nullptr;
  const Index target = work.targets[n];
  const T maximum = Largest(d, logits, work.vocabulary), at_target = logits[target];
  const auto maxima = hn::Set(d, maximum);
  const double largest = static_cast<double>(SumParts(d, work.vocabulary, [&](auto part) HWY_ATTR {
    return hn::IfThenElseZero(hn::Eq(part.load(logits), maxima), hn::Set(d, T{1}));
  }));
  const double others = static_cast<double>(SumParts(d, work.vocabulary, [&](auto part) HWY_ATTR {
    const auto x = part.load(logits);
    const auto power = ExpFlushed(d, hn::Sub(x, maxima));
    if (dlogits != nullptr) part.store(power, dlogits);
    return hn::IfThenZeroElse(hn::Eq(x, maxima), power);  // a NaN equals nothing and is summed
  }));
  if (dlogits != nullptr) {
    const double scale = work.weight(n) / work.total_weight;
    const auto factor = hn::Set(d, static_cast<T>(scale / (largest + others)));
    EachPart(d, work.vocabulary,
             [&](auto part) HWY_ATTR { part.store(hn::Mul(part.load(dlogits), factor), dlogits); });
    if (at_target == maximum) {
      dlogits[target] = static_cast<T>(-scale * ((largest - 1 + others) / (largest + others)));
    } else {
      dlogits[target] -= static_cast<T>(scale);
    }
  }
  return static_cast<double>(maximum) - static_cast<double>(at_target) + std::log1p(largest - 1 + others);
}

template <class T>
void LossOfRows(const CrossEntropyWork<T>& work, Index begin, Index end) {
  for (Index n = begin; n < end; ++n) {
    double loss = 0;
    if (work.weight(n) > 0) {
      loss = LossOfRow(work, n);
    } else if (work.dlogits) {
      std::fill_n(work.dlogits[n], work.vocabulary, T{0});
    }
    work.losses[n - work.first] = loss;
  }
}

HEEDFUL_ROW_KERNEL(LossOfRows, CrossEntropyWork)

}  // namespace HWY_NAMESPACE
}  // namespace heedful
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heedful {
namespace {

HEEDFUL_ROW_KERNEL_CHOICE(losses_of_rows, LossOfRows, CrossEntropyWork)

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
    const T weight = weights.empty() ? T{1} : weights[n];
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

}  // namespace

template <class T>
double cross_entropy(const Context& context, const CrossEntropyOutput<T>& output, In<T, 2> logits,
                     std::span<const Index> targets, In<T, 1> weights) {
  const double total_weight = checked_weight<T>(output, logits, targets, weights);
  const Index rows = logits.extent(0), vocabulary = logits.extent(1);
  const internal::DenseRows<const T> in(logits);
  const internal::DenseRows<T> out(output.dlogits);
  CrossEntropyWork<T> work{in.rows(), out.rows(), vocabulary, targets.data(), weights, total_weight, nullptr, 0};

  double sum = 0;
  const auto add = [&](Index begin, Index end) {
    for (Index n = begin; n < end; ++n) {
      const double loss = work.losses[n - work.first];
      if (!output.losses.empty()) output.losses[n] = loss;
      sum += work.weight(n) * loss;
    }
  };
  if (context.threads() == 1) {
    double some[64];  // a few rows at a time, so that nothing is allocated
    work.losses = some;
    for (; work.first < rows; work.first += std::ssize(some)) {
      const Index end = std::min(rows, work.first + std::ssize(some));
      losses_of_rows(work, work.first, end);
      add(work.first, end);
    }
  } else {
    thread_local std::vector<double> all;  // grows to the largest call, so that a training step allocates nothing
    all.resize(static_cast<std::size_t>(rows));
    work.losses = all.data();
    internal::for_rows(context, rows, vocabulary, [&](Index begin, Index end) { losses_of_rows(work, begin, end); });
    add(0, rows);
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
#endif  // HWY_ONCE
