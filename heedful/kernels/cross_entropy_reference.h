// cross_entropy.h by its formula, in any scalar (double, Dual): the yardstick of cross_entropy.cc.
#ifndef HEEDFUL_KERNELS_CROSS_ENTROPY_REFERENCE_H_
#define HEEDFUL_KERNELS_CROSS_ENTROPY_REFERENCE_H_

#include <cmath>
#include <span>

#include "heedful/core/view.h"

namespace heedful {

template <class T>
T cross_entropy_reference(View<const T, 2> logits, std::span<const Index> targets, In<double, 1> weights) {
  using std::exp, std::log;
  T loss = 0;
  double total_weight = 0;
  for (Index n = 0; n < logits.extent(0); ++n) {
    if (weights[n] == 0) continue;
    T maximum = logits(n, 0), total = 0;
    for (Index v = 1; v < logits.extent(1); ++v) maximum = maximum < logits(n, v) ? logits(n, v) : maximum;
    for (Index v = 0; v < logits.extent(1); ++v) total += exp(logits(n, v) - maximum);
    loss += T(weights[n]) * (log(total) + (maximum - logits(n, targets[static_cast<std::size_t>(n)])));
    total_weight += weights[n];
  }
  return loss / T(total_weight);
}

}  // namespace heedful

#endif  // HEEDFUL_KERNELS_CROSS_ENTROPY_REFERENCE_H_
