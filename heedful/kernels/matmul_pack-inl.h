// Packing for matmul: part of a matrix is copied so that tiles find it in the order in which they read it. Included by
// matmul_targets.cc, once for every target that has fused multiply-adds.
#if defined(HEEDFUL_KERNELS_MATMUL_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEEDFUL_KERNELS_MATMUL_PACK_INL_H_
#undef HEEDFUL_KERNELS_MATMUL_PACK_INL_H_
#else
#define HEEDFUL_KERNELS_MATMUL_PACK_INL_H_
#endif

#include "heedful/core/view.h"
#include "hwy/highway.h"

#if HWY_NATIVE_FMA
HWY_BEFORE_NAMESPACE();
namespace heedful::internal {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What is packed: element (k, n) lies at from[k·k_step + n·n_step].
template <class T>
struct Strip {
  const T* from;
  Index k_step, n_step;
  Index depth, columns;
};

// Blocks of 16 bytes are the transpositions that every target has: 4×4 floats, 2×2 doubles.
template <class T>
using Block = hn::CappedTag<T, 16 / sizeof(T)>;

HWY_INLINE void TransposeBlock(float* HWY_RESTRICT to, Index to_step, const float* HWY_RESTRICT from,
                               Index from_step) {
  const Block<float> d;
  const auto r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + from_step);
  const auto r2 = hn::LoadU(d, from + 2 * from_step), r3 = hn::LoadU(d, from + 3 * from_step);
  const auto low02 = hn::InterleaveLower(d, r0, r2), low13 = hn::InterleaveLower(d, r1, r3);
  const auto high02 = hn::InterleaveUpper(d, r0, r2), high13 = hn::InterleaveUpper(d, r1, r3);
  hn::StoreU(hn::InterleaveLower(d, low02, low13), d, to);
  hn::StoreU(hn::InterleaveUpper(d, low02, low13), d, to + to_step);
  hn::StoreU(hn::InterleaveLower(d, high02, high13), d, to + 2 * to_step);
  hn::StoreU(hn::InterleaveUpper(d, high02, high13), d, to + 3 * to_step);
}

HWY_INLINE void TransposeBlock(double* HWY_RESTRICT to, Index to_step, const double* HWY_RESTRICT from,
                               Index from_step) {
  const Block<double> d;
  const auto r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + from_step);
  hn::StoreU(hn::InterleaveLower(d, r0, r1), d, to);
  hn::StoreU(hn::InterleaveUpper(d, r0, r1), d, to + to_step);
}

// Columns far apart, elements of a column next to each other. In runs of kRun of k, so that the lines written to stay
// in the first-level cache until they are full.
template <class T>
void PackColumns(T* HWY_RESTRICT packed, Index width, const Strip<T>& strip) {
  constexpr Index kRun = 64, kSide = 16 / sizeof(T);
  for (Index begin = 0; begin < strip.depth; begin += kRun) {
    const Index end = HWY_MIN(strip.depth, begin + kRun);
    Index n = 0;
    for (; n + kSide <= strip.columns; n += kSide) {
      const T* from = strip.from + n * strip.n_step;
      Index k = begin;
      for (; k + kSide <= end; k += kSide) TransposeBlock(packed + k * width + n, width, from + k, strip.n_step);
      for (; k < end; ++k) {
        for (Index i = 0; i < kSide; ++i) packed[k * width + n + i] = from[k + i * strip.n_step];
      }
    }
    for (; n < strip.columns; ++n) {
      const T* from = strip.from + n * strip.n_step;
      for (Index k = begin; k < end; ++k) packed[k * width + n] = from[k];
    }
  }
}

// Elements of a row next to each other.
template <class T>
void PackRows(T* HWY_RESTRICT packed, Index width, const Strip<T>& strip) {
  const Block<T> d;
  constexpr Index kSide = 16 / sizeof(T);
  for (Index k = 0; k < strip.depth; ++k) {
    const T* from = strip.from + k * strip.k_step;
    T* to = packed + k * width;
    Index n = 0;
    for (; n + kSide <= strip.columns; n += kSide) hn::StoreU(hn::LoadU(d, from + n), d, to + n);
    for (; n < strip.columns; ++n) to[n] = from[n];
  }
}

// packed[k·width + n] = element (k, n), and zeros from n = columns on.
template <class T>
void Pack(T* HWY_RESTRICT packed, Index width, const Strip<T>& strip) {
  if (strip.n_step == 1) {
    PackRows(packed, width, strip);
  } else if (strip.k_step == 1) {
    PackColumns(packed, width, strip);
  } else {
    for (Index k = 0; k < strip.depth; ++k) {
      for (Index n = 0; n < strip.columns; ++n) {
        packed[k * width + n] = strip.from[k * strip.k_step + n * strip.n_step];
      }
    }
  }
  for (Index k = 0; k < strip.depth && strip.columns < width; ++k) {
    for (Index n = strip.columns; n < width; ++n) packed[k * width + n] = 0;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heedful::internal
HWY_AFTER_NAMESPACE();
#endif

#endif  // HEEDFUL_KERNELS_MATMUL_PACK_INL_H_
