// What matmul.cc hands to the code of one processor family in matmul_targets.cc.
#ifndef HEEDFUL_KERNELS_MATMUL_WORK_H_
#define HEEDFUL_KERNELS_MATMUL_WORK_H_

#include "heedful/core/view.h"

namespace heedful::internal {

// c[m, n] (+)= Σ_k a[m, k]·b[k, n] by pointers; the shapes have been checked.
template <class T>
struct MatmulWork {
  T* c;
  const T* a;
  const T* b;
  Index rows, columns, depth;  // M, N, K
  Index c_row, c_column;       // strides
  Index a_row, a_column;
  Index b_row, b_column;
  bool accumulate;
  // Added to the finished chains in turn: elements [m, n] at at[m·row + n], none where `at` is null.
  struct Addend {
    const T* at = nullptr;
    Index row = 0;
  };
  Addend addends[2] = {};
};

// Does the whole of it on this thread, on the best vector unit there is.
void matmul_on_this_thread(const MatmulWork<float>& work);
void matmul_on_this_thread(const MatmulWork<double>& work);

// Memory of this thread, one of two pieces, that keeps its contents until it is asked for again. On a cache line;
// allocates only when it has to grow.
template <class T>
T* matmul_scratch(int piece, Index size);

}  // namespace heedful::internal

#endif  // HEEDFUL_KERNELS_MATMUL_WORK_H_
