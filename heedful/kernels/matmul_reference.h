// matmul by its formula, in any scalar: the yardstick of matmul.cc. Rounds after every product and every sum.
#ifndef HEEDFUL_KERNELS_MATMUL_REFERENCE_H_
#define HEEDFUL_KERNELS_MATMUL_REFERENCE_H_

#include "heedful/core/view.h"

namespace heedful {

template <class T>
void matmul_reference(View<T, 2> c, In<T, 2> a, In<T, 2> b) {
  for (Index m = 0; m < c.extent(0); ++m) {
    for (Index n = 0; n < c.extent(1); ++n) {
      T sum{};
      for (Index k = 0; k < a.extent(1); ++k) sum += a(m, k) * b(k, n);
      c(m, n) = sum;
    }
  }
}

}  // namespace heedful

#endif  // HEEDFUL_KERNELS_MATMUL_REFERENCE_H_
