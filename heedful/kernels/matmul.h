// C = A·B, or C += A·B, with what is added to every row while the result is still in registers.
//
//     c[m, n] = Σ_k a[m, k]·b[k, n] + bias[n] + residual[m, n]        c [M, N], a [M, K], b [K, N]
//
// Every element is one chain of fused multiply-adds, s ← fma(a[m, k], b[k, n], s), from s = 0 in ascending k; with
// `accumulate` the finished chain is then added to c, then the bias is added, then the residual, each in one rounding:
// the bits of doing the same in passes of their own. The chain is the same on every processor, for
// every number of threads and for every M, N and stride, so a row computed alone has the bits it has in a batch.
//
// Strides are free: a transposed factor is a transposed view. What lies badly is packed on the way, in parts that the
// caches hold, in memory that a thread keeps; fastest when columns of b and c are neighbours. Extents may be 0 (K = 0
// gives zeros). c may not overlap an input. Throws Error when the shapes do not fit. Its backward is itself:
//
//     matmul(context, da, dc, b.transpose());
//     matmul(context, db, a.transpose(), dc, {.accumulate = true});
#ifndef HEEDFUL_KERNELS_MATMUL_H_
#define HEEDFUL_KERNELS_MATMUL_H_

#include "heedful/core/context.h"
#include "heedful/core/view.h"

namespace heedful {

template <class T>
struct MatmulOptions {
  bool accumulate = false;         // add to c instead of overwriting it
  View<const T, 1> bias = {};      // [N], or empty
  View<const T, 2> residual = {};  // [M, N], or empty
};

// Instantiated for float and double.
template <class T>
void matmul(const Context& context, View<T, 2> c, In<T, 2> a, In<T, 2> b,
            const MatmulOptions<std::type_identity_t<T>>& options = {});

}  // namespace heedful

#endif  // HEEDFUL_KERNELS_MATMUL_H_
