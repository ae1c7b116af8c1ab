// normalization.h by its formulas, in any scalar (double, Dual): the yardstick of normalization.cc.
#ifndef HEEDFUL_KERNELS_NORMALIZATION_REFERENCE_H_
#define HEEDFUL_KERNELS_NORMALIZATION_REFERENCE_H_

#include <cmath>

#include "heedful/core/view.h"

namespace heedful {

template <class T>
void layer_norm_reference(View<T, 2> y, In<T, 2> x, In<T, 1> gain, In<T, 1> bias, double epsilon) {
  using std::sqrt;
  const T count = static_cast<double>(x.extent(1));
  for (Index n = 0; n < x.extent(0); ++n) {
    T mean = 0, variance = 0;
    for (Index c = 0; c < x.extent(1); ++c) mean += x(n, c) / count;
    for (Index c = 0; c < x.extent(1); ++c) variance += (x(n, c) - mean) * (x(n, c) - mean) / count;
    const T deviation = sqrt(variance + T(epsilon));
    for (Index c = 0; c < x.extent(1); ++c) y(n, c) = gain[c] * ((x(n, c) - mean) / deviation) + bias[c];
  }
}

template <class T>
void rms_norm_reference(View<T, 2> y, In<T, 2> x, In<T, 1> gain, double epsilon) {
  using std::sqrt;
  const T count = static_cast<double>(x.extent(1));
  for (Index n = 0; n < x.extent(0); ++n) {
    T square = 0;
    for (Index c = 0; c < x.extent(1); ++c) square += x(n, c) * x(n, c) / count;
    const T root = sqrt(square + T(epsilon));
    for (Index c = 0; c < x.extent(1); ++c) y(n, c) = gain[c] * (x(n, c) / root);
  }
}

}  // namespace heedful

#endif  // HEEDFUL_KERNELS_NORMALIZATION_REFERENCE_H_
