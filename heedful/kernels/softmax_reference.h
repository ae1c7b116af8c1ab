// softmax.h by its formulas, in any scalar (double, Dual): the yardstick of softmax.cc.
#ifndef HEEDFUL_KERNELS_SOFTMAX_REFERENCE_H_
#define HEEDFUL_KERNELS_SOFTMAX_REFERENCE_H_

#include <cmath>

#include "heedful/core/view.h"

namespace heedful {

template <class T>
void softmax_reference(View<T, 2> y, In<T, 2> x) {
  using std::exp;
  for (Index n = 0; n < x.extent(0); ++n) {
    T maximum = x(n, 0), total = 0;
    for (Index v = 1; v < x.extent(1); ++v) maximum = maximum < x(n, v) ? x(n, v) : maximum;
    for (Index v = 0; v < x.extent(1); ++v) total += exp(x(n, v) - maximum);
    for (Index v = 0; v < x.extent(1); ++v) y(n, v) = exp(x(n, v) - maximum) / total;
  }
}

template <class T>
void log_softmax_reference(View<T, 2> y, In<T, 2> x) {
  using std::exp, std::log;
  for (Index n = 0; n < x.extent(0); ++n) {
    T maximum = x(n, 0), total = 0;
    for (Index v = 1; v < x.extent(1); ++v) maximum = maximum < x(n, v) ? x(n, v) : maximum;
    for (Index v = 0; v < x.extent(1); ++v) total += exp(x(n, v) - maximum);
    for (Index v = 0; v < x.extent(1); ++v) y(n, v) = (x(n, v) - maximum) - log(total);
  }
}

}  // namespace heedful

#endif  // HEEDFUL_KERNELS_SOFTMAX_REFERENCE_H_
