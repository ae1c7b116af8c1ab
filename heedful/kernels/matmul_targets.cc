// The inside of matmul, compiled once for every processor family (Highway's foreach_target) and chosen at run time:
// cuts the product into parts that the caches hold, packs what is worth it, and runs tiles.
#include <cmath>

#include "heedful/kernels/matmul_work.h"
#include "heedful/kernels/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heedful/kernels/matmul_targets.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
//
#include "heedful/kernels/matmul_pack-inl.h"
#include "heedful/kernels/matmul_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heedful::internal {
namespace HWY_NAMESPACE {

#if HWY_NATIVE_FMA

// Measured on one core with 48 KiB and 1 MiB of first- and second-level cache; each is flat within a factor of two.
constexpr Index kBytesOfRows = Index{256} << 10;     // of a: stay in the second-level cache while panels of b pass by
constexpr Index kBytesOfPanels = Index{4} << 20;     // of packed b: stay in the third
constexpr Index kRowsWorthPacking = 96;              // from here on b is packed though its columns are neighbours,
constexpr Index kSpanWorthPacking = Index{4} << 20;  // if it reaches over so many bytes,
constexpr Index kPage = 4096;                        // or all its rows meet in the same sets of the first cache;
constexpr Index kPanelsWorthPacking = 4;  // and a for that many panels, if its rows are not neighbours in k
constexpr Index kBytesWorthPacking = Index{64} << 10;  // and it is more than the first-level cache holds;
constexpr Index kDepthWorthPacking = 64;               // neither when it is this shallow

template <class T>
class Product {
 public:
  explicit Product(const MatmulWork<T>& work) : work_(work) {
    const bool deep = work.depth >= kDepthWorthPacking;
    width_ = lanes() * (work.rows == 1 ? 8 : work.rows == 2 ? 4 : 2);
    const Index b_step = work.b_row * static_cast<Index>(sizeof(T));
    pack_b_ =
        (work.b_column != 1 && work.columns > 1) || (!kMasksMemory && work.columns % lanes() != 0) ||
        (deep && work.rows >= kRowsWorthPacking && (work.depth * b_step >= kSpanWorthPacking || b_step % kPage == 0));
    pack_a_ = work.a_column != 1 && deep && work.columns >= kPanelsWorthPacking * width_ &&
              work.rows * work.depth * static_cast<Index>(sizeof(T)) > kBytesWorthPacking;
  }

  void run() const {
    const Index depth_bytes = HWY_MAX(Index{1}, work_.depth) * static_cast<Index>(sizeof(T));
    const bool all_rows = work_.rows * depth_bytes <= kBytesOfRows;
    const Index rows_together =
        all_rows ? work_.rows : HWY_MAX(Index{1}, kBytesOfRows / depth_bytes / kMostRows) * kMostRows;
    const bool all_columns = !pack_b_ || work_.columns * depth_bytes <= kBytesOfPanels;
    const Index columns_together =
        all_columns ? work_.columns : HWY_MAX(Index{1}, kBytesOfPanels / depth_bytes / width_) * width_;
    T* const packed_a = pack_a_ ? matmul_scratch<T>(0, rounded(rows_together, kMostRows) * work_.depth) : nullptr;
    T* const packed_b = pack_b_ ? matmul_scratch<T>(1, rounded(columns_together, width_) * work_.depth) : nullptr;

    for (Index column = 0; column < work_.columns; column += columns_together) {
      const Index columns = HWY_MIN(columns_together, work_.columns - column);
      if (pack_b_) pack_panels(packed_b, column, columns);
      for (Index row = 0; row < work_.rows; row += rows_together) {
        const Index rows = HWY_MIN(rows_together, work_.rows - row);
        if (pack_a_) pack_rows(packed_a, row, rows);
        run_part(row, rows, column, columns, packed_a, packed_b);
      }
    }
  }

 private:
  static Index lanes() { return static_cast<Index>(hn::Lanes(hn::ScalableTag<T>())); }
  static Index rounded(Index value, Index unit) { return (value + unit - 1) / unit * unit; }

  void pack_panels(T* packed, Index first, Index columns) const {
    Pack(packed, width_,
         Strip<T>{work_.b + first * work_.b_column, work_.b_row, work_.b_column, work_.depth, columns});
  }
  void pack_rows(T* packed, Index first, Index rows) const {
    Pack(packed, Index{kMostRows},
         Strip<T>{work_.a + first * work_.a_row, work_.a_column, work_.a_row, work_.depth, rows});
  }

  void run_part(Index row, Index rows, Index first, Index columns, const T* packed_a, const T* packed_b) const {
    Tile<T> tile;
    tile.c_row = work_.c_row;
    tile.a_row = pack_a_ ? 1 : work_.a_row;
    tile.a_column = pack_a_ ? kMostRows : work_.a_column;
    tile.group = pack_a_ ? kMostRows * work_.depth : kMostRows * work_.a_row;
    tile.b_row = pack_b_ ? width_ : work_.b_row;
    tile.depth = work_.depth;
    tile.accumulate = work_.accumulate;
    for (Index column = 0; column < columns; column += width_) {
      tile.c = work_.c + row * work_.c_row + (first + column) * work_.c_column;
      for (int n = 0; n < 2; ++n) {
        const auto& [at, step] = work_.addends[n];
        tile.addends[n] = {at == nullptr ? nullptr : at + row * step + first + column, step};
      }
      tile.a = pack_a_ ? packed_a : work_.a + row * work_.a_row;
      tile.b = pack_b_ ? packed_b + column * work_.depth : work_.b + first + column;
      RunPanel(tile, rows, HWY_MIN(width_, columns - column));
    }
  }

  const MatmulWork<T>& work_;
  Index width_;  // of a panel
  bool pack_a_, pack_b_;
};

template <class T>
void Run(const MatmulWork<T>& work) {
  Product<T>(work).run();
}

#else  // no fused multiply-add among the instructions: the same chains by std::fma

template <class T>
void Run(const MatmulWork<T>& work) {
  for (Index m = 0; m < work.rows; ++m) {
    for (Index n = 0; n < work.columns; ++n) {
      T chain = 0;
      for (Index k = 0; k < work.depth; ++k) {
        const T a = work.a[m * work.a_row + k * work.a_column];
        chain = std::fma(a, work.b[k * work.b_row + n * work.b_column], chain);
      }
      T& to = work.c[m * work.c_row + n * work.c_column];
      T result = work.accumulate ? to + chain : chain;
      for (const auto& [at, step] : work.addends) {
        if (at != nullptr) result += at[m * step + n];
      }
      to = result;
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

}  // namespace HWY_NAMESPACE
}  // namespace heedful::internal
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
