// The inside of matmul, compiled once for every processor family (Highway's foreach_target) and chosen at run time.
//
// A panel of b, kVectors vectors wide, meets the rows of a in tiles of kRows: kRows·kVectors running chains stay in
// registers for all of k. Whatever the tile, an element's chain is the same; tiles differ in speed alone.
#include <cmath>
#include <type_traits>

#include "heedful/kernels/matmul_work.h"
#include "heedful/kernels/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heedful/kernels/matmul_targets.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heedful::internal::HWY_NAMESPACE {

#if HWY_NATIVE_FMA

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
#if HWY_TARGET == HWY_NEON
constexpr bool kMasksMemory = false;
#else
constexpr bool kMasksMemory = true;
#endif

// Rows from which a panel of b that need not be packed is packed nevertheless, so that its lines stay together in the
// first-level cache and the pages of b are walked once.
constexpr Index kRowsWorthPacking = 96;

// Bytes of a that pass by every panel before the next rows do: they stay in the second-level cache.
constexpr Index kBytesOfRows = Index{256} << 10;

// Up to kRows × kVectors of c.
template <class T>
struct Tile {
  T* c;
  const T* a;
  const T* b;
  Index c_row, a_row, a_column, b_row;
  Index depth;
  Index columns_of_last;  // of the last vector
  bool accumulate;
};

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
  const auto store = [&](auto accumulate) HWY_ATTR {
    T* HWY_RESTRICT c = tile.c;
    const Index c_row = tile.c_row;
    HWY_UNROLL(16)
    for (int row = 0; row < kRows; ++row) {
      HWY_UNROLL(16)
      for (int v = 0; v < kVectors; ++v) {
        T* to = c + v * lanes;
        V result = chain[row][v];
        if (!kMasksMemory && kPartial && v == kVectors - 1) {
          HWY_ALIGN T lane[hn::MaxLanes(d)];
          hn::Store(result, d, lane);
          for (Index n = 0; n < tile.columns_of_last; ++n) to[n] = accumulate ? to[n] + lane[n] : lane[n];
        } else if (kPartial && v == kVectors - 1) {
          if constexpr (accumulate) result = hn::Add(hn::MaskedLoad(mask, d, to), result);
          hn::BlendedStore(result, mask, d, to);
        } else {
          if constexpr (accumulate) result = hn::Add(hn::LoadU(d, to), result);
          hn::StoreU(result, d, to);
        }
      }
      c += c_row;
    }
  };
  if (tile.accumulate) {
    store(std::true_type{});
  } else {
    store(std::false_type{});
  }
}

template <int kVectors, bool kPartial, class T>
void RunRows(Tile<T> tile, Index rows) {
  const auto run = [&](Index count, void (*function)(const Tile<T>&)) {
    for (; rows >= count; rows -= count) {
      function(tile);
      tile.a += count * tile.a_row;
      tile.c += count * tile.c_row;
    }
  };
  if constexpr (kVectors <= 2) {
    run(kMostRows, &RunTile<kMostRows, kVectors, kPartial, T>);
    if constexpr (kMostRows > 8) run(8, &RunTile<8, kVectors, kPartial, T>);
    run(4, &RunTile<4, kVectors, kPartial, T>);
  }
  run(2, &RunTile<2, kVectors, kPartial, T>);
  run(1, &RunTile<1, kVectors, kPartial, T>);
}

// One panel of at most four vectors; b's columns are neighbours here.
template <class T>
void RunPanel(Tile<T> tile, Index rows, Index columns) {
  const hn::ScalableTag<T> d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  const Index vectors = (columns + lanes - 1) / lanes;
  tile.columns_of_last = columns - (vectors - 1) * lanes;
  const bool partial = tile.columns_of_last < lanes;
  switch (vectors * 2 + (partial ? 1 : 0)) {
    case 2:
      return RunRows<1, false>(tile, rows);
    case 3:
      return RunRows<1, true>(tile, rows);
    case 4:
      return RunRows<2, false>(tile, rows);
    case 5:
      return RunRows<2, true>(tile, rows);
    case 6:
      return RunRows<3, false>(tile, rows);
    case 7:
      return RunRows<3, true>(tile, rows);
    case 8:
      return RunRows<4, false>(tile, rows);
    default:
      return RunRows<4, true>(tile, rows);
  }
}

// packed[k·width + n] = b[k, n] and zeros from n = columns on, in squares so that neither side strides through memory
// for long.
template <class T>
void Pack(T* HWY_RESTRICT packed, const MatmulWork<T>& work, Index first, Index columns, Index width) {
  constexpr Index kSide = 32;
  for (Index begin = 0; begin < work.depth; begin += kSide) {
    const Index end = HWY_MIN(work.depth, begin + kSide);
    if (work.b_column == 1) {
      for (Index k = begin; k < end; ++k) {
        const T* from = work.b + k * work.b_row + first;
        for (Index n = 0; n < columns; ++n) packed[k * width + n] = from[n];
      }
    } else {
      for (Index n = 0; n < columns; ++n) {
        const T* from = work.b + (first + n) * work.b_column;
        for (Index k = begin; k < end; ++k) packed[k * width + n] = from[k * work.b_row];
      }
    }
    for (Index k = begin; k < end; ++k) {
      for (Index n = columns; n < width; ++n) packed[k * width + n] = 0;
    }
  }
}

template <class T>
void Run(const MatmulWork<T>& work) {
  const hn::ScalableTag<T> d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  const Index width = lanes * (work.rows < 4 ? 4 : 2);
  const bool pack = (work.b_column != 1 && work.columns > 1) || (!kMasksMemory && work.columns % lanes != 0) ||
                    (work.rows >= kRowsWorthPacking && work.b_row != width);
  T* const packed = pack ? matmul_scratch<T>(work.depth * width) : nullptr;
  const Index depth_bytes = HWY_MAX(Index{1}, work.depth) * static_cast<Index>(sizeof(T));
  const Index rows_together = HWY_MAX(Index{1}, kBytesOfRows / depth_bytes / kMostRows) * kMostRows;

  for (Index row = 0; row < work.rows; row += rows_together) {
    const Index rows = HWY_MIN(rows_together, work.rows - row);
    for (Index column = 0; column < work.columns; column += width) {
      const Index columns = HWY_MIN(width, work.columns - column);
      if (pack) Pack(packed, work, column, columns, width);
      Tile<T> tile{};
      tile.c = work.c + row * work.c_row + column * work.c_column;
      tile.c_row = work.c_row;
      tile.a = work.a + row * work.a_row;
      tile.a_row = work.a_row;
      tile.a_column = work.a_column;
      tile.b = pack ? packed : work.b + column;
      tile.b_row = pack ? width : work.b_row;
      tile.depth = work.depth;
      tile.accumulate = work.accumulate;
      RunPanel(tile, rows, columns);
    }
  }
}

#else  // no fused multiply-add among the instructions: the same chains by std::fma

template <class T>
void Run(const MatmulWork<T>& work) {
  for (Index m = 0; m < work.rows; ++m) {
    for (Index n = 0; n < work.columns; ++n) {
      T chain = 0;
      for (Index k = 0; k < work.depth; ++k) {
        chain =
            std::fma(work.a[m * work.a_row + k * work.a_column], work.b[k * work.b_row + n * work.b_column], chain);
      }
      T& to = work.c[m * work.c_row + n * work.c_column];
      to = work.accumulate ? to + chain : chain;
    }
  }
}

#endif

void RunFloat(const MatmulWork<float>& work) {
  Run(work);
}
void RunDouble(const MatmulWork<double>& work) {
  Run(work);
}

}  // namespace heedful::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heedful::internal {

HWY_EXPORT(RunFloat);
HWY_EXPORT(RunDouble);

void matmul_on_this_thread(const MatmulWork<float>& work) {
  HWY_DYNAMIC_DISPATCH(RunFloat)(work);
}
void matmul_on_this_thread(const MatmulWork<double>& work) {
  HWY_DYNAMIC_DISPATCH(RunDouble)(work);
}

}  // namespace heedful::internal
#endif
