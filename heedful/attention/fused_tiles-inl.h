// The products under fused attention: panels, and register tiles over them. Every element of every product is one
// chain of fused multiply-adds in ascending order, so no tile size shows in a result.
#if defined(HEEDFUL_ATTENTION_FUSED_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEEDFUL_ATTENTION_FUSED_TILES_INL_H_
#undef HEEDFUL_ATTENTION_FUSED_TILES_INL_H_
#else
#define HEEDFUL_ATTENTION_FUSED_TILES_INL_H_
#endif

#include <algorithm>
#include <type_traits>

#include "heedful/attention/fused_call.h"
#include "heedful/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heedful::HWY_NAMESPACE {

template <class T>
inline constexpr Index kLanes = HWY_LANES(T);

// A factor of a product whose rows or columns run along k. Left: element (r, k) at data[r·kRow + k·step], kRow known
// to the compiler. Right: row k of columns at data[k·step]; when it is a row of panels, `panel` is the distance
// between the panels, and kPanel when the columns simply follow one another.
template <class T>
struct Factor {
  const T* data;
  Index step;
  Index panel = kPanel;
};

// Accumulators that leave room for the operands among 32, 16, 32 and 16 registers.
inline constexpr int kAccumulators = HWY_TARGET == HWY_AVX3   ? 24
                                     : HWY_TARGET == HWY_AVX2 ? 12
                                     : HWY_MAX_BYTES == 16    ? 24
                                                              : 8;
// Vectors a tile is wide when there are rows enough: fewest loads for each multiply-add.
inline constexpr int kTileVectors = kAccumulators == 24 ? 4 : 2;

constexpr int most_rows(int vectors) {
  return std::min(12, kAccumulators / vectors);
}
constexpr int tile_rows(Index rows, int vectors) {
  for (int size : {12, 6, 4, 2}) {
    if (size <= most_rows(vectors) && size <= rows) return size;
  }
  return 1;
}

enum class Store { assign, add };

// out[r][c] = scale·Σ_k left(r, k)·right(k, c), or the chain goes on from what out holds (add; then no scale).
template <int R, int NV, Index kRow, Store kStore, class T>
HWY_NOINLINE void product_tile(T* HWY_RESTRICT out, Index out_stride, const T* left, Index left_step, const T* right,
                               Index right_step, Index right_panel, Index depth, T scale) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  V sum[R][NV];
  HWY_UNROLL(16)
  for (int r = 0; r < R; ++r) {
    HWY_UNROLL(16)
    for (int v = 0; v < NV; ++v) {
      sum[r][v] = kStore == Store::add ? hn::LoadU(d, out + r * out_stride + v * kLanes<T>) : hn::Zero(d);
    }
  }
  const T* columns[NV];
  HWY_UNROLL(16)
  for (int v = 0; v < NV; ++v) {
    columns[v] = right + v * kLanes<T> / kPanel * right_panel + v * kLanes<T> % kPanel;
  }
  for (Index k = 0; k < depth; ++k) {
    V b[NV];
    HWY_UNROLL(16)
    for (int v = 0; v < NV; ++v) b[v] = hn::LoadU(d, columns[v] + k * right_step);
    HWY_UNROLL(16)
    for (int r = 0; r < R; ++r) {
      const V a = hn::Set(d, left[r * kRow + k * left_step]);
      HWY_UNROLL(16)
      for (int v = 0; v < NV; ++v) sum[r][v] = Fma(a, b[v], sum[r][v]);
    }
  }
  const V factor = hn::Set(d, scale);
  HWY_UNROLL(16)
  for (int r = 0; r < R; ++r) {
    HWY_UNROLL(16)
    for (int v = 0; v < NV; ++v) {
      const V result = kStore == Store::add ? sum[r][v] : hn::Mul(sum[r][v], factor);
      hn::StoreU(result, d, out + r * out_stride + v * kLanes<T>);
    }
  }
}

template <int NV, Index kRow, Store kStore, class T>
HWY_INLINE void product_rows(T* out, Index out_stride, Index rows, Factor<T> left, Factor<T> right, Index depth,
                             T scale) {
  while (rows > 0) {
    const int size = tile_rows(rows, NV);
    const auto tile = [&]<int R>(std::integral_constant<int, R>) {
      if constexpr (R <= most_rows(NV)) {
        product_tile<R, NV, kRow, kStore>(out, out_stride, left.data, left.step, right.data, right.step, right.panel,
                                          depth, scale);
      }
    };
    switch (size) {
      case 12:
        tile(std::integral_constant<int, 12>{});
        break;
      case 6:
        tile(std::integral_constant<int, 6>{});
        break;
      case 4:
        tile(std::integral_constant<int, 4>{});
        break;
      case 2:
        tile(std::integral_constant<int, 2>{});
        break;
      default:
        tile(std::integral_constant<int, 1>{});
    }
    rows -= size;
    out += size * out_stride;
    left.data += size * kRow;
  }
}

// The whole product: `rows` by `columns`, the latter whole vectors. Few rows get wider tiles, so that enough chains
// are under way at once.
template <Index kRow, Store kStore, class T>
HWY_INLINE void product(T* out, Index out_stride, Index rows, Index columns, Factor<T> left, Factor<T> right,
                        Index depth, T scale = 1) {
  Index c = 0;
  while (c < columns) {
    const Index vectors = (columns - c) / kLanes<T>;
    const Factor<T> part{right.data + c / kPanel * right.panel + c % kPanel, right.step, right.panel};
    const auto strip = [&]<int NV>(std::integral_constant<int, NV>) {
      product_rows<NV, kRow, kStore>(out + c, out_stride, rows, left, part, depth, scale);
      return NV * kLanes<T>;
    };
    if (vectors >= 8 && rows <= most_rows(8)) {
      c += strip(std::integral_constant<int, 8>{});
    } else if (vectors >= 4 && (kTileVectors >= 4 || rows <= most_rows(4))) {
      c += strip(std::integral_constant<int, 4>{});
    } else if (vectors >= 2) {
      c += strip(std::integral_constant<int, 2>{});
    } else {
      c += strip(std::integral_constant<int, 1>{});
    }
  }
}

}  // namespace heedful::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEEDFUL_ATTENTION_FUSED_TILES_INL_H_
