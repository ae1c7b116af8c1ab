// A square of vectors, transposed in registers.
#if defined(HEEDFUL_KERNELS_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEEDFUL_KERNELS_TRANSPOSE_INL_H_
#undef HEEDFUL_KERNELS_TRANSPOSE_INL_H_
#else
#define HEEDFUL_KERNELS_TRANSPOSE_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heedful::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// rows[r] lane c ↔ rows[c] lane r, for as many rows as a vector has lanes.
template <class T, class V>
HWY_INLINE void transpose(V (&rows)[HWY_LANES(T)]) {
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<T> d;
  constexpr int kLanes = HWY_LANES(T);
  constexpr int kBlock = 16 / sizeof(T), kBlocks = kLanes / kBlock;  // lanes of 128 bits
  // Inside the blocks: of every kBlock rows, vector i holds column i, i + kBlock, …
  HWY_UNROLL(16)
  for (int r = 0; r < kLanes; r += kBlock) {
    if constexpr (kBlock == 4) {
      const V a = hn::InterleaveLower(d, rows[r], rows[r + 2]), b = hn::InterleaveUpper(d, rows[r], rows[r + 2]);
      const V e = hn::InterleaveLower(d, rows[r + 1], rows[r + 3]),
              f = hn::InterleaveUpper(d, rows[r + 1], rows[r + 3]);
      rows[r] = hn::InterleaveLower(d, a, e);
      rows[r + 1] = hn::InterleaveUpper(d, a, e);
      rows[r + 2] = hn::InterleaveLower(d, b, f);
      rows[r + 3] = hn::InterleaveUpper(d, b, f);
    } else {
      const V a = hn::InterleaveLower(d, rows[r], rows[r + 1]);
      rows[r + 1] = hn::InterleaveUpper(d, rows[r], rows[r + 1]);
      rows[r] = a;
    }
  }
  // Then the blocks: those of vectors i, i + kBlock, … change places.
  HWY_UNROLL(16)
  for (int i = 0; i < kBlock; ++i) {
    if constexpr (kBlocks == 2) {
      const V low = hn::ConcatLowerLower(d, rows[i + kBlock], rows[i]);
      rows[i + kBlock] = hn::ConcatUpperUpper(d, rows[i + kBlock], rows[i]);
      rows[i] = low;
    } else if constexpr (kBlocks == 4) {
      V &p = rows[i], &q = rows[i + kBlock], &r = rows[i + 2 * kBlock], &s = rows[i + 3 * kBlock];
      const V even_pq = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(q), p);
      const V odd_pq = hn::OddEvenBlocks(q, hn::SwapAdjacentBlocks(p));
      const V even_rs = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(s), r);
      const V odd_rs = hn::OddEvenBlocks(s, hn::SwapAdjacentBlocks(r));
      p = hn::ConcatLowerLower(d, even_rs, even_pq);
      q = hn::ConcatLowerLower(d, odd_rs, odd_pq);
      r = hn::ConcatUpperUpper(d, even_rs, even_pq);
      s = hn::ConcatUpperUpper(d, odd_rs, odd_pq);
    }
  }
#else
  (void)rows;
#endif
}

}  // namespace heedful::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEEDFUL_KERNELS_TRANSPOSE_INL_H_
