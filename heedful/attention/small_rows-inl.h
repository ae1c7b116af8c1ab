// What both passes of a small head share: which keys its queries see, and its rows, which come and go by pointer and
// stride: at this size the copying of views would show.
#if defined(HEEDFUL_ATTENTION_SMALL_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEEDFUL_ATTENTION_SMALL_ROWS_INL_H_
#undef HEEDFUL_ATTENTION_SMALL_ROWS_INL_H_
#else
#define HEEDFUL_ATTENTION_SMALL_ROWS_INL_H_
#endif

#include <algorithm>
#include <array>
#include <bit>

#include "heedful/attention/fused_pack-inl.h"
#include "heedful/attention/fused_rows-inl.h"
#include "heedful/attention/small_call.h"

HWY_BEFORE_NAMESPACE();
namespace heedful::HWY_NAMESPACE {

// The keys that each query of a sequence sees; all of its heads see the same.
template <class T>
class SmallMask {
 public:
  explicit SmallMask(const FusedCall<T>& call)
      : call_(call), differs_(!call.options.key_lengths.empty() || !call.options.query_offsets.empty()) {}

  // Goes to sequence b, where it is not yet, or in one that sees the same.
  void look(Index b) {
    if (b_ == b || (b_ >= 0 && !differs_)) return;
    b_ = b;
    for (Index i = 0; i < call_.shape.Tq; ++i) {
      const KeyRange keys = call_.mask.range(b, i);
      bits_[static_cast<std::size_t>(i)][0] =
          (std::uint64_t{1} << keys.end) - (std::uint64_t{1} << keys.begin);  // begin ≤ end ≤ 32
    }
  }
  const ChunkBits* bits() const { return bits_.data(); }
  bool sees_any(Index i) const { return bits_[static_cast<std::size_t>(i)][0] != 0; }
  // The end of what queries [first, first + count) see.
  Index end_of(Index first, Index count) const {
    std::uint64_t any = 0;
    for (Index i = first; i < first + count; ++i) any |= bits_[static_cast<std::size_t>(i)][0];
    return static_cast<Index>(std::bit_width(any));
  }

 private:
  const FusedCall<T>& call_;
  const bool differs_;
  Index b_ = -1;
  std::array<ChunkBits, kSmallLength> bits_{};
};

// The rows of one head of a tensor [B, heads, rows, columns].
template <class S>
struct HeadRows {
  HeadRows(const View<S, 4>& all, Index b, Index head)
      : data(all.data() + b * all.stride(0) + head * all.stride(1)),
        count(all.extent(2)),
        columns(all.extent(3)),
        stride(all.stride(2)),
        step(all.stride(3)) {}

  HeadRows part(Index first, Index rows) const {
    HeadRows result = *this;
    result.data += first * stride;
    result.count = rows;
    return result;
  }

  S* data;
  Index count, columns, stride, step;
};

// Rows kSmallStride apart, in whole vectors, as pack_rows() lays them out; whether all of them are finite.
template <class T>
HWY_INLINE bool pack_small_rows(T* HWY_RESTRICT to, const HeadRows<const T>& from) {
  const hn::ScalableTag<T> d;
  const Index whole = from.columns / kLanes<T> * kLanes<T>, rest = from.columns - whole;
  auto zeros = hn::Zero(d);  // or NaN, once there was anything not finite
  for (Index r = 0; r < from.count; ++r, to += kSmallStride) {
    const T* row = from.data + r * from.stride;
    if (from.step != 1) {
      for (Index c = 0; c < from.columns; ++c) to[c] = row[c * from.step];
      std::fill(to + from.columns, to + round_up(from.columns, kLanes<T>), T{0});
      row = to;
    }
    for (Index c = 0; c < whole; c += kLanes<T>) {
      const auto x = hn::LoadU(d, row + c);
      zeros = hn::Add(zeros, hn::Mul(x, hn::Zero(d)));
      hn::Store(x, d, to + c);
    }
    if (rest > 0) {
      const auto x = LoadFirst(d, row + whole, static_cast<size_t>(rest));
      zeros = hn::Add(zeros, hn::Mul(x, hn::Zero(d)));
      hn::Store(x, d, to + whole);
    }
  }
  return hn::AllTrue(d, hn::Eq(zeros, zeros));
}

#if HWY_TARGET == HWY_AVX3
// The panel of rows of at most 8 columns where a vector has 16 lanes, in blocks of 4. Writes 8 columns, the last of
// them perhaps into the next panel, which is to be packed later.
inline void pack_narrow_panel(float* HWY_RESTRICT panel, const HeadRows<const float>& from) {
  const hn::ScalableTag<float> d;
  const hn::Half<decltype(d)> half;
  using V = hn::Vec<decltype(d)>;
  const auto row = [&](Index r) HWY_ATTR {
    const float* from_row = from.data + std::min(r, from.count - 1) * from.stride;
    return LoadFirst(half, from_row, static_cast<size_t>(from.columns));
  };
  V x[8];  // rows n and n + 8
  HWY_UNROLL(8)
  for (int n = 0; n < 8; ++n) x[n] = hn::Combine(d, row(n + 8), row(n));
  HWY_UNROLL(2)
  for (int n = 0; n < 8; n += 4) {  // inside the blocks: x[n + c] = column c, and c + 4, of rows n … n + 3
    const V a = hn::InterleaveLower(d, x[n], x[n + 2]), b = hn::InterleaveUpper(d, x[n], x[n + 2]);
    const V e = hn::InterleaveLower(d, x[n + 1], x[n + 3]), f = hn::InterleaveUpper(d, x[n + 1], x[n + 3]);
    x[n] = hn::InterleaveLower(d, a, e);
    x[n + 1] = hn::InterleaveUpper(d, a, e);
    x[n + 2] = hn::InterleaveLower(d, b, f);
    x[n + 3] = hn::InterleaveUpper(d, b, f);
  }
  HWY_UNROLL(4)
  for (int c = 0; c < 4; ++c) {
    hn::Store(hn::OddEvenBlocks(hn::SwapAdjacentBlocks(x[c + 4]), x[c]), d, panel + c * kPanel);
    hn::Store(hn::OddEvenBlocks(x[c + 4], hn::SwapAdjacentBlocks(x[c])), d, panel + (c + 4) * kPanel);
  }
}
#endif

// panel[c][r] = the rows of a head. What stands behind the last of them is hidden from every query.
template <class T>
HWY_INLINE void pack_small_panel(T* HWY_RESTRICT panel, const HeadRows<const T>& from) {
#if HWY_TARGET == HWY_AVX3
  // Half of a vector holds a row: two rows a vector then, for which a third of the exchanges do.
  if constexpr (kLanes<T> == 16) {
    if (from.step == 1 && from.columns <= 8) return pack_narrow_panel(panel, from);
  }
#endif
  std::array<const T*, kPanel> rows{};
  for (Index r = 0; r < from.count; ++r) rows[static_cast<std::size_t>(r)] = from.data + r * from.stride;
  pack_panel(panel, rows, from.step, from.columns);
}

// The rows of a head in panels one after another.
template <class T>
HWY_INLINE void pack_small_panels(T* HWY_RESTRICT panels, const HeadRows<const T>& from) {
  for (Index r = 0; r < from.count; r += kPanel, panels += from.columns * kPanel) {
    pack_small_panel(panels, from.part(r, std::min(kPanel, from.count - r)));
  }
}

// to[r][c] = value(r, c) of each vector from c on.
template <class T, class Value>
HWY_INLINE void write_small_rows(const HeadRows<T>& to, const Value& value) {
  const hn::ScalableTag<T> d;
  if (to.step != 1) {
    for (Index r = 0; r < to.count; ++r) {
      const View<T, 1> row(to.data + r * to.stride, {to.columns}, {to.step});
      write_row<T>(row, [&](Index c) HWY_ATTR { return value(r, c); });
    }
    return;
  }
  const Index count = to.count, stride = to.stride;
  const Index whole = to.columns / kLanes<T> * kLanes<T>, rest = to.columns - whole;
  T* row = to.data;
  for (Index r = 0; r < count; ++r, row += stride) {
    for (Index c = 0; c < whole; c += kLanes<T>) hn::StoreU(value(r, c), d, row + c);
    if (rest > 0) StoreFirst(value(r, whole), d, row + whole, static_cast<size_t>(rest));
  }
}

// The statistics of a head, of a tensor [B, H, Tq]; none where that was not given.
template <class S>
struct HeadValues {
  HeadValues(const View<S, 3>& all, Index b, Index h)
      : data(all.empty() ? nullptr : all.data() + b * all.stride(0) + h * all.stride(1)), stride(all.stride(2)) {}
  S& operator[](Index i) const { return data[i * stride]; }

  S* data;
  Index stride;
};

}  // namespace heedful::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEEDFUL_ATTENTION_SMALL_ROWS_INL_H_
