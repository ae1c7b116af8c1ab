#include "heedful/kernels/matmul.h"

#include <cmath>
#include <utility>

#include "heedful/kernels/rows.h"

namespace heedful {

// Stand-in until the tiles land: the contract's chain, written plainly.
template <class T>
void matmul(const Context& context, View<T, 2> c, In<T, 2> a, In<T, 2> b, MatmulOptions options) {
  internal::require_shape("matmul", "a", a, {c.extent(0), a.extent(1)});
  internal::require_shape("matmul", "b", b, {a.extent(1), c.extent(1)});
  internal::for_rows(context, c.extent(0), c.extent(1) * a.extent(1), [&](Index begin, Index end) {
    for (Index m = begin; m < end; ++m) {
      for (Index n = 0; n < c.extent(1); ++n) {
        T chain = 0;
        for (Index k = 0; k < a.extent(1); ++k) chain = std::fma(a(m, k), b(k, n), chain);
        c(m, n) = options.accumulate ? c(m, n) + chain : chain;
      }
    }
  });
}

template void matmul<float>(const Context&, View<float, 2>, In<float, 2>, In<float, 2>, MatmulOptions);
template void matmul<double>(const Context&, View<double, 2>, In<double, 2>, In<double, 2>, MatmulOptions);

}  // namespace heedful
