// The two loops under attention, for one row at a time. Matrices are packed: rows of whole vectors, so that no loop
// has a tail. What the padding holds never reaches a result. Every element is one chain of fused multiply-adds in
// ascending order, so it does not depend on the vector's width nor on what stands beside it.
#include "hwy/highway.h"

#if defined(HEEDFUL_ATTENTION_ATTENTION_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEEDFUL_ATTENTION_ATTENTION_ROWS_INL_H_
#undef HEEDFUL_ATTENTION_ATTENTION_ROWS_INL_H_
#else
#define HEEDFUL_ATTENTION_ATTENTION_ROWS_INL_H_
#endif

#include "heedful/core/view.h"

HWY_BEFORE_NAMESPACE();
namespace heedful::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
Index padded(Index columns) {
  const Index lanes = static_cast<Index>(hn::Lanes(hn::ScalableTag<T>()));
  return (columns + lanes - 1) / lanes * lanes;
}

// y[c] = Σ_r x[r] · matrix[r][c] for r in [0, rows), or with kAdd y[c] + it, the chain going on from what y holds. y
// has room for whole vectors, and so have the matrix's rows.
template <bool kAdd, class T>
void row_product(T* HWY_RESTRICT y, const T* HWY_RESTRICT x, const T* HWY_RESTRICT matrix, Index stride, Index rows,
                 Index columns) {
  const hn::ScalableTag<T> d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  const auto start = [&](Index c) { return kAdd ? hn::LoadU(d, y + c) : hn::Zero(d); };
  Index c = 0;
  for (; c + 3 * lanes < columns; c += 4 * lanes) {
    auto y0 = start(c), y1 = start(c + lanes), y2 = start(c + 2 * lanes), y3 = start(c + 3 * lanes);
    const T* m = matrix + c;
    for (Index r = 0; r < rows; ++r, m += stride) {
      const auto factor = hn::Set(d, x[r]);
      y0 = hn::MulAdd(factor, hn::LoadU(d, m), y0);
      y1 = hn::MulAdd(factor, hn::LoadU(d, m + lanes), y1);
      y2 = hn::MulAdd(factor, hn::LoadU(d, m + 2 * lanes), y2);
      y3 = hn::MulAdd(factor, hn::LoadU(d, m + 3 * lanes), y3);
    }
    hn::StoreU(y0, d, y + c);
    hn::StoreU(y1, d, y + c + lanes);
    hn::StoreU(y2, d, y + c + 2 * lanes);
    hn::StoreU(y3, d, y + c + 3 * lanes);
  }
  for (; c < columns; c += lanes) {
    auto y0 = start(c);
    const T* m = matrix + c;
    for (Index r = 0; r < rows; ++r, m += stride) y0 = hn::MulAdd(hn::Set(d, x[r]), hn::LoadU(d, m), y0);
    hn::StoreU(y0, d, y + c);
  }
}
template <class T>
void row_times_matrix(T* y, const T* x, const T* matrix, Index stride, Index rows, Index columns) {
  row_product<false>(y, x, matrix, stride, rows, columns);
}
template <class T>
void add_row_times_matrix(T* y, const T* x, const T* matrix, Index stride, Index rows, Index columns) {
  row_product<true>(y, x, matrix, stride, rows, columns);
}

// matrix[r][c] += x[r] · y[c]
template <class T>
void add_outer_product(T* HWY_RESTRICT matrix, Index stride, const T* HWY_RESTRICT x, const T* HWY_RESTRICT y,
                       Index rows, Index columns) {
  const hn::ScalableTag<T> d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  for (Index c = 0; c < columns; c += lanes) {
    const auto factor = hn::LoadU(d, y + c);
    T* m = matrix + c;
    for (Index r = 0; r < rows; ++r, m += stride) {
      hn::StoreU(hn::MulAdd(hn::Set(d, x[r]), factor, hn::LoadU(d, m)), d, m);
    }
  }
}

}  // namespace heedful::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEEDFUL_ATTENTION_ATTENTION_ROWS_INL_H_
