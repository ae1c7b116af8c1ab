// The tile of matmul: up to kMostRows rows of a meet a panel of b that is one to eight vectors wide. The running chains
// of all its elements stay in registers for all of k. Whatever the tile, an element's chain is the same; tiles differ
// in speed alone. Included by matmul_targets.cc, once for every target that has fused multiply-adds.
#if defined(HEEDFUL_KERNELS_MATMUL_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEEDFUL_KERNELS_MATMUL_TILE_INL_H_
#undef HEEDFUL_KERNELS_MATMUL_TILE_INL_H_
#else
#define HEEDFUL_KERNELS_MATMUL_TILE_INL_H_
#endif

#include <type_traits>

#include "heedful/kernels/matmul_work.h"
#include "hwy/highway.h"

#if HWY_NATIVE_FMA
HWY_BEFORE_NAMESPACE();
namespace heedful::internal {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows of the largest tile: with two vectors a row, the running chains, one row of b and one element of a fill the
// registers there are (32, or 16 on AVX2).
#if HWY_TARGET == HWY_AVX2
constexpr int kMostRows = 6;
#else
constexpr int kMostRows = 12;
#endif

// Whether loads and stores of some lanes touch no memory of the others. Where they do, a ragged last panel of b is
// packed with zeros behind it and its results pass through a buffer.
#if HWY_ARCH_X86
constexpr bool kMasksMemory = true;
#else
constexpr bool kMasksMemory = false;
#endif

template <class T>
struct Tile {
  T* c;
  const T* a;
  const T* b;
  Index c_row, a_row, a_column, b_row;  // steps between rows and columns
  Index group;                          // from the a of one full tile to that of the next
  Index depth;
  Index columns_of_last;  // of the last vector
  bool accumulate;
  typename MatmulWork<T>::Addend addends[2];
};

// kPlain overwrites c; otherwise c, bias and residual may have to be added, which is asked at every vector.
template <int kRows, int kVectors, bool kPartial, bool kPlain, class T, class V>
HWY_INLINE void StoreTile(const Tile<T>& tile, const V (&chain)[kRows][kVectors]) {
  const hn::ScalableTag<T> d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  const auto mask = hn::FirstN(d, static_cast<size_t>(tile.columns_of_last));
  T* HWY_RESTRICT c = tile.c;
  const Index c_row = tile.c_row;
  HWY_UNROLL(16)
  for (int row = 0; row < kRows; ++row) {
    HWY_UNROLL(16)
    for (int v = 0; v < kVectors; ++v) {
      T* to = c + v * lanes;
      V result = chain[row][v];
      if (kPartial && v == kVectors - 1) {
        if constexpr (kMasksMemory) {
          if constexpr (!kPlain) {
            if (tile.accumulate) result = hn::Add(hn::MaskedLoad(mask, d, to), result);
            for (const auto& [at, step] : tile.addends) {
              if (at != nullptr) result = hn::Add(hn::MaskedLoad(mask, d, at + row * step + v * lanes), result);
            }
          }
          hn::BlendedStore(result, mask, d, to);
        } else {
          HWY_ALIGN T lane[hn::MaxLanes(d)];
          hn::Store(result, d, lane);
          for (Index n = 0; n < tile.columns_of_last; ++n) {
            if (tile.accumulate) lane[n] = to[n] + lane[n];
            for (const auto& [at, step] : tile.addends) {
              if (at != nullptr) lane[n] += at[row * step + v * lanes + n];
            }
            to[n] = lane[n];
          }
        }
      } else {
        if constexpr (!kPlain) {
          if (tile.accumulate) result = hn::Add(hn::LoadU(d, to), result);
          for (const auto& [at, step] : tile.addends) {
            if (at != nullptr) result = hn::Add(hn::LoadU(d, at + row * step + v * lanes), result);
          }
        }
        hn::StoreU(result, d, to);
      }
    }
    c += c_row;
  }
}

template <int kRows, int kVectors, bool kPartial, class T>
HWY_NOINLINE void RunTile(const Tile<T>& tile) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  const auto mask = hn::FirstN(d, static_cast<size_t>(tile.columns_of_last));

  V chain[kRows][kVectors];
  HWY_UNROLL(16)
  for (int row = 0; row < kRows; ++row) {
    HWY_UNROLL(16)
    for (int v = 0; v < kVectors; ++v) chain[row][v] = hn::Zero(d);
  }
  // Every third row has its own pointer, the two after it are reached by one stride: an address for each row would
  // not fit the general registers.
  const Index a_row = tile.a_row;
  const T* HWY_RESTRICT a[(kRows + 2) / 3];
  HWY_UNROLL(16)
  for (int row = 0; row < kRows; row += 3) a[row / 3] = tile.a + row * a_row;
  const T* HWY_RESTRICT b = tile.b;
  for (Index k = tile.depth; k > 0; --k) {
    V b_row[kVectors];
    HWY_UNROLL(16)
    for (int v = 0; v < kVectors; ++v) {
      if (kMasksMemory && kPartial && v == kVectors - 1) {
        b_row[v] = hn::MaskedLoad(mask, d, b + v * lanes);
      } else {
        b_row[v] = hn::LoadU(d, b + v * lanes);
      }
    }
    HWY_UNROLL(16)
    for (int row = 0; row < kRows; ++row) {
      const V a_element = hn::Set(d, a[row / 3][row % 3 * a_row]);
      HWY_UNROLL(16)
      for (int v = 0; v < kVectors; ++v) chain[row][v] = hn::MulAdd(a_element, b_row[v], chain[row][v]);
    }
    HWY_UNROLL(16)
    for (int row = 0; row < kRows; row += 3) a[row / 3] += tile.a_column;
    b += tile.b_row;
  }
  if (tile.accumulate || tile.addends[0].at != nullptr || tile.addends[1].at != nullptr) {
    StoreTile<kRows, kVectors, kPartial, false>(tile, chain);
  } else {
    StoreTile<kRows, kVectors, kPartial, true>(tile, chain);
  }
}

template <class T>
HWY_INLINE void MoveDown(Tile<T>& tile, Index rows) {
  tile.c += rows * tile.c_row;
  for (auto& [at, step] : tile.addends) at += at == nullptr ? 0 : rows * step;
}

// A few rows that are left over are cut so that no tile of one or two rows, which waits for its own chains, is added
// to tiles that do not.
template <int kVectors, bool kPartial, class T>
HWY_INLINE void RunLastRows(Tile<T>& tile, Index rows) {
  constexpr Index kNext[12] = {0, 1, 2, 3, 4, 3, 6, 4, 8, 6, 6, 8};
  while (rows > 0) {
    const Index next = HWY_MIN(kNext[rows], kMostRows);
    switch (next) {
      case 1:
        RunTile<1, kVectors, kPartial>(tile);
        break;
      case 2:
        RunTile<2, kVectors, kPartial>(tile);
        break;
      case 3:
        RunTile<3, kVectors, kPartial>(tile);
        break;
      case 4:
        RunTile<4, kVectors, kPartial>(tile);
        break;
      case 6:
        RunTile<6, kVectors, kPartial>(tile);
        break;
      default:
        if constexpr (kMostRows > 8) RunTile<8, kVectors, kPartial>(tile);
    }
    tile.a += next * tile.a_row;
    MoveDown(tile, next);
    rows -= next;
  }
}

template <int kVectors, bool kPartial, class T>
void RunRows(Tile<T>& tile, Index rows) {
  if constexpr (kVectors <= 2) {
    for (; rows >= kMostRows; rows -= kMostRows) {
      RunTile<kMostRows, kVectors, kPartial>(tile);
      tile.a += tile.group;
      MoveDown(tile, kMostRows);
    }
    RunLastRows<kVectors, kPartial>(tile, rows);
  } else if constexpr (kVectors <= 4) {  // one row, or two
    rows == 2 ? RunTile<2, kVectors, kPartial>(tile) : RunTile<1, kVectors, kPartial>(tile);
  } else {
    RunTile<1, kVectors, kPartial>(tile);
  }
}

// One panel of at most two vectors, of four when there are two rows and of eight when there is one: long runs of b,
// which is then read once. Its columns are neighbours here. Moves tile.a, tile.c and the addends on; by reference,
// because copying what has just been written stalls.
template <class T>
HWY_INLINE void RunPanel(Tile<T>& tile, Index rows, Index columns) {
  const hn::ScalableTag<T> d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  const Index vectors = (columns + lanes - 1) / lanes;
  tile.columns_of_last = columns - (vectors - 1) * lanes;
  const bool partial = tile.columns_of_last < lanes;
  switch (vectors) {
    case 1:
      return partial ? RunRows<1, true>(tile, rows) : RunRows<1, false>(tile, rows);
    case 2:
      return partial ? RunRows<2, true>(tile, rows) : RunRows<2, false>(tile, rows);
    case 3:
      return partial ? RunRows<3, true>(tile, rows) : RunRows<3, false>(tile, rows);
    case 4:
      return partial ? RunRows<4, true>(tile, rows) : RunRows<4, false>(tile, rows);
    case 5:
      return partial ? RunRows<5, true>(tile, rows) : RunRows<5, false>(tile, rows);
    case 6:
      return partial ? RunRows<6, true>(tile, rows) : RunRows<6, false>(tile, rows);
    case 7:
      return partial ? RunRows<7, true>(tile, rows) : RunRows<7, false>(tile, rows);
    default:
      return partial ? RunRows<8, true>(tile, rows) : RunRows<8, false>(tile, rows);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heedful::internal
HWY_AFTER_NAMESPACE();
#endif

#endif  // HEEDFUL_KERNELS_MATMUL_TILE_INL_H_
