// The loops under attention, for one row at a time. Rows are followed by room for a whole vector, so that no product
// has a tail; what stands there never reaches a result. Every element of a product is one chain of fused multiply-adds
// in ascending order, so its bits depend neither on the target nor on what stands beside it.
#if defined(HEEDFUL_ATTENTION_ATTENTION_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEEDFUL_ATTENTION_ATTENTION_ROWS_INL_H_
#undef HEEDFUL_ATTENTION_ATTENTION_ROWS_INL_H_
#else
#define HEEDFUL_ATTENTION_ATTENTION_ROWS_INL_H_
#endif

#include "heedful/core/view.h"
#include "heedful/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heedful::HWY_NAMESPACE {

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
  Index c = 0;
  for (; c + 3 * lanes < columns; c += 4 * lanes) {
    auto y0 = hn::Zero(d), y1 = y0, y2 = y0, y3 = y0;
    if constexpr (kAdd) {
      y0 = hn::LoadU(d, y + c), y1 = hn::LoadU(d, y + c + lanes);
      y2 = hn::LoadU(d, y + c + 2 * lanes), y3 = hn::LoadU(d, y + c + 3 * lanes);
    }
    const T* m = matrix + c;
    for (Index r = 0; r < rows; ++r, m += stride) {
      const auto factor = hn::Set(d, x[r]);
      y0 = Fma(factor, hn::LoadU(d, m), y0);
      y1 = Fma(factor, hn::LoadU(d, m + lanes), y1);
      y2 = Fma(factor, hn::LoadU(d, m + 2 * lanes), y2);
      y3 = Fma(factor, hn::LoadU(d, m + 3 * lanes), y3);
    }
    hn::StoreU(y0, d, y + c);
    hn::StoreU(y1, d, y + c + lanes);
    hn::StoreU(y2, d, y + c + 2 * lanes);
    hn::StoreU(y3, d, y + c + 3 * lanes);
  }
  for (; c < columns; c += lanes) {
    auto y0 = hn::Zero(d);
    if constexpr (kAdd) y0 = hn::LoadU(d, y + c);
    const T* m = matrix + c;
    for (Index r = 0; r < rows; ++r, m += stride) y0 = Fma(hn::Set(d, x[r]), hn::LoadU(d, m), y0);
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
      hn::StoreU(Fma(hn::Set(d, x[r]), factor, hn::LoadU(d, m)), d, m);
    }
  }
}

// y[n] = exp(x[n] − shift) for n in [0, count), where x ≤ shift. Of y nothing else is written.
template <class T>
void exp_of_difference(T* HWY_RESTRICT y, const T* HWY_RESTRICT x, T shift, Index count) {
  const hn::ScalableTag<T> d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  for (Index n = 0; n < count; n += lanes) {
    const auto value = ExpFlushed(d, hn::Sub(hn::LoadU(d, x + n), hn::Set(d, shift)));
    hn::BlendedStore(value, hn::FirstN(d, static_cast<size_t>(count - n)), d, y + n);
  }
}

// x[n] = tanh(x[n] / divisor) for n in [0, count). Of x nothing else is written.
template <class T>
void tanh_of_quotient(T* HWY_RESTRICT x, T divisor, Index count) {
  const hn::ScalableTag<T> d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  for (Index n = 0; n < count; n += lanes) {
    const auto value = Tanh(d, hn::Div(hn::LoadU(d, x + n), hn::Set(d, divisor)));
    hn::BlendedStore(value, hn::FirstN(d, static_cast<size_t>(count - n)), d, x + n);
  }
}

}  // namespace heedful::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEEDFUL_ATTENTION_ATTENTION_ROWS_INL_H_
