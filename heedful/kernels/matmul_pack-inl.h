// Packing for matmul: part of a matrix is copied so that tiles find it in the order in which they read it. Included by
// matmul_targets.cc, once for every target that has fused multiply-adds.
#if defined(HEEDFUL_KERNELS_MATMUL_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEEDFUL_KERNELS_MATMUL_PACK_INL_H_
#undef HEEDFUL_KERNELS_MATMUL_PACK_INL_H_
#else
#define HEEDFUL_KERNELS_MATMUL_PACK_INL_H_
#endif

#include "heedful/core/view.h"
#include "heedful/kernels/simd-inl.h"
#include "heedful/kernels/transpose-inl.h"
#include "hwy/highway.h"

#if HWY_NATIVE_FMA
HWY_BEFORE_NAMESPACE();
namespace heedful::internal {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using heedful::HWY_NAMESPACE::LoadFirst;
using heedful::HWY_NAMESPACE::StoreFirst;
using heedful::HWY_NAMESPACE::transpose;

// What is packed: element (k, n) lies at from[k·k_step + n·n_step].
template <class T>
struct Strip {
  const T* from;
  Index k_step, n_step;
  Index depth, columns;
};

constexpr size_t size(Index n) {
  return static_cast<size_t>(n);
}

// Columns far apart, elements of a column next to each other: squares of as many columns as a vector has lanes.
template <class T>
void PackColumns(T* HWY_RESTRICT packed, Index width, const Strip<T>& strip) {
  const hn::ScalableTag<T> d;
  constexpr int kLanes = HWY_LANES(T);
  hn::Vec<decltype(d)> square[kLanes];
  for (Index k = 0; k < strip.depth; k += kLanes) {
    const Index depth = HWY_MIN(Index{kLanes}, strip.depth - k);
    for (Index n = 0; n < strip.columns; n += kLanes) {
      const Index columns = HWY_MIN(Index{kLanes}, strip.columns - n);
      const T* from = strip.from + n * strip.n_step + k;
      T* to = packed + k * width + n;
      if (depth == kLanes && columns == kLanes) {
        HWY_UNROLL(16)
        for (int i = 0; i < kLanes; ++i) square[i] = hn::LoadU(d, from + i * strip.n_step);
        transpose<T>(square);
        HWY_UNROLL(16)
        for (int i = 0; i < kLanes; ++i) hn::StoreU(square[i], d, to + i * width);
      } else {
        HWY_UNROLL(16)
        for (int i = 0; i < kLanes; ++i) {
          square[i] = i < columns ? LoadFirst(d, from + i * strip.n_step, size(depth)) : hn::Zero(d);
        }
        transpose<T>(square);
        HWY_UNROLL(16)
        for (int i = 0; i < kLanes; ++i) {
          if (i < depth) StoreFirst(square[i], d, to + i * width, size(columns));
        }
      }
    }
  }
}

// Elements of a row next to each other: some panels at a time, so that memory is read in long runs.
template <class T>
void PackRows(T* HWY_RESTRICT packed, Index width, const Strip<T>& strip) {
  const hn::ScalableTag<T> d;
  constexpr Index kLanes = HWY_LANES(T);
  const Index panels = strip.columns / width, rest = strip.columns % width;
  for (Index k = 0; k < strip.depth; ++k) {
    const T* from = strip.from + k * strip.k_step;
    T* to = packed + k * width;
    for (Index panel = 0; panel < panels; ++panel, from += width, to += strip.depth * width) {
      Index n = 0;
      for (; n + kLanes <= width; n += kLanes) hn::StoreU(hn::LoadU(d, from + n), d, to + n);
      if (n < width) StoreFirst(LoadFirst(d, from + n, size(width - n)), d, to + n, size(width - n));
    }
    for (Index n = 0; n < rest; n += kLanes) {
      const Index count = HWY_MIN(kLanes, rest - n);
      StoreFirst(LoadFirst(d, from + n, size(count)), d, to + n, size(count));
    }
  }
}

// Panels of `width` columns, one behind the other: packed[panel·depth·width + k·width + n] = element (k, panel·width +
// n), and zeros behind the last column.
template <class T>
void Pack(T* HWY_RESTRICT packed, Index width, const Strip<T>& all) {
  constexpr Index kTogether = 16;
  const Index step = (all.n_step == 1 ? kTogether : 1) * width;
  for (Index first = 0; first < all.columns; first += step, packed += step * all.depth) {
    const Strip<T> strip{all.from + first * all.n_step, all.k_step, all.n_step, all.depth,
                         HWY_MIN(step, all.columns - first)};
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
    const Index ragged = strip.columns % width;
    if (ragged == 0) continue;
    T* const last = packed + strip.columns / width * width * strip.depth;
    for (Index k = 0; k < strip.depth; ++k) {
      for (Index n = ragged; n < width; ++n) last[k * width + n] = 0;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heedful::internal
HWY_AFTER_NAMESPACE();
#endif

#endif  // HEEDFUL_KERNELS_MATMUL_PACK_INL_H_
