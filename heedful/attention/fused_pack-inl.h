// Laying out rows for the tiles of fused attention: the keys of a chunk in panels, its values in rows of whole
// vectors. Nothing here rounds.
#if defined(HEEDFUL_ATTENTION_FUSED_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEEDFUL_ATTENTION_FUSED_PACK_INL_H_
#undef HEEDFUL_ATTENTION_FUSED_PACK_INL_H_
#else
#define HEEDFUL_ATTENTION_FUSED_PACK_INL_H_
#endif

#include <algorithm>
#include <array>
#include <utility>

#include "heedful/attention/fused_call.h"
#include "heedful/attention/fused_tiles-inl.h"
#include "heedful/kernels/transpose-inl.h"
#include "hwy/cache_control.h"

HWY_BEFORE_NAMESPACE();
namespace heedful::HWY_NAMESPACE {

// Numbers as they are stored, S, in the type of the arithmetic, T. Widening is exact.
template <class T>
T widened(T x) {
  return x;
}
template <class T>
T widened(Bfloat16 x) {
  return bfloat16_to_float(x.bits);
}
template <class T>
HWY_INLINE hn::Vec<hn::ScalableTag<T>> load_widened(const T* from) {
  return hn::LoadU(hn::ScalableTag<T>(), from);
}
template <class T>
HWY_INLINE hn::Vec<hn::ScalableTag<T>> load_widened(const Bfloat16* from) {
  const hn::ScalableTag<T> d;
  const hn::Rebind<float, decltype(d)> single;
  const hn::Rebind<std::uint32_t, decltype(d)> bits;
  const hn::Rebind<std::uint16_t, decltype(d)> stored;
  const auto wide =
      hn::ShiftLeft<16>(hn::PromoteTo(bits, hn::LoadU(stored, reinterpret_cast<const std::uint16_t*>(from))));
  if constexpr (sizeof(T) == sizeof(float)) {
    return hn::BitCast(d, wide);
  } else {
    return hn::PromoteTo(d, hn::BitCast(single, wide));
  }
}
template <class T>
HWY_INLINE hn::Vec<hn::ScalableTag<T>> load_first_widened(const T* from, Index count) {
  return LoadFirst(hn::ScalableTag<T>(), from, static_cast<size_t>(count));
}
template <class T>
HWY_INLINE hn::Vec<hn::ScalableTag<T>> load_first_widened(const Bfloat16* from, Index count) {
  Bfloat16 lanes[kLanes<T>] = {};
  std::copy_n(from, count, lanes);
  return load_widened<T>(lanes);
}

// panel[c][r] = rows[r][c·step], 0 where the row is null.
template <class T>
void pack_panel(T* HWY_RESTRICT panel, const std::array<const T*, kPanel>& rows, Index step, Index columns) {
  if (step != 1) {
    for (Index c = 0; c < columns; ++c) {
      for (std::size_t r = 0; r < kPanel; ++r) {
        panel[c * kPanel + static_cast<Index>(r)] = rows[r] != nullptr ? rows[r][c * step] : T{0};
      }
    }
    return;
  }
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto square = [&](Index c, const auto& load) HWY_ATTR {
    for (Index r = 0; r < kPanel; r += kLanes<T>) {
      V lines[kLanes<T>];
      HWY_UNROLL(16)
      for (int n = 0; n < kLanes<T>; ++n) {
        const T* row = rows[static_cast<std::size_t>(r + n)];
        lines[n] = row != nullptr ? load(row + c) : hn::Zero(d);
      }
      transpose<T>(lines);
      HWY_UNROLL(16)
      for (int n = 0; n < kLanes<T>; ++n) {
        if (c + n < columns) hn::Store(lines[n], d, panel + (c + n) * kPanel + r);
      }
    }
  };
  Index c = 0;
  for (; c + kLanes<T> <= columns; c += kLanes<T>) {
    square(c, [&](const T* from) HWY_ATTR { return hn::LoadU(d, from); });
  }
  if (c < columns) {
    square(c, [&](const T* from) HWY_ATTR { return LoadFirst(d, from, static_cast<size_t>(columns - c)); });
  }
}

// A panel reads 16 rows side by side, which no hardware prefetcher foresees.
inline constexpr Index kPanelsAhead = 2;
template <class T>
void fetch_rows(View<const T, 2> from, Index begin, Index end) {
  if (from.stride(1) != 1) return;
  for (Index j = begin; j < end; ++j) {
    const T* row = &from(j, Index{0});
    for (Index c = 0; c < from.extent(1); c += 64 / static_cast<Index>(sizeof(T))) hwy::Prefetch(row + c);
  }
}

// Panels of rows [begin, end) of `from` [rows, columns], begin a multiple of kPanel; the last one filled up with
// zeros.
template <class T>
void pack_panels(T* panels, View<const T, 2> from, Index begin, Index end) {
  const Index columns = from.extent(1);
  for (Index j = begin; j < end; j += kPanel) {
    fetch_rows(from, j + kPanelsAhead * kPanel, std::min(end, j + (kPanelsAhead + 1) * kPanel));
    std::array<const T*, kPanel> rows{};
    for (Index r = 0; r < std::min(kPanel, end - j); ++r) rows[static_cast<std::size_t>(r)] = &from(j + r, Index{0});
    pack_panel(panels + (j - begin) * columns, rows, from.stride(1), columns);
  }
}

// Rows [begin, end) of `from`, `stride` apart, in whole vectors.
template <class T, class S>
void pack_rows(T* to, Index stride, View<const S, 2> from, Index begin, Index end) {
  const hn::ScalableTag<T> d;
  const Index columns = from.extent(1), step = from.stride(1);
  for (Index j = begin; j < end; ++j, to += stride) {
    const S* row = &from(j, Index{0});
    if (step == 1) {
      Index c = 0;
      for (; c + kLanes<T> <= columns; c += kLanes<T>) hn::StoreU(load_widened<T>(row + c), d, to + c);
      if (c < columns) hn::StoreU(load_first_widened<T>(row + c, columns - c), d, to + c);
    } else {
      for (Index c = 0; c < columns; ++c) to[c] = widened<T>(row[c * step]);
      std::fill(to + columns, to + round_up(columns, kLanes<T>), T{0});
    }
  }
}

// to[c] = value(c) of each vector from c on, for the columns of a row.
template <class T, class Value>
HWY_INLINE void write_row(View<T, 1> to, const Value& value) {
  const hn::ScalableTag<T> d;
  const Index columns = to.extent(0);
  if (to.stride(0) == 1) {
    Index c = 0;
    for (; c + kLanes<T> <= columns; c += kLanes<T>) hn::StoreU(value(c), d, to.data() + c);
    if (c < columns) StoreFirst(value(c), d, to.data() + c, static_cast<size_t>(columns - c));
  } else {
    HWY_ALIGN T lanes[kLanes<T>];
    for (Index c = 0; c < columns; c += kLanes<T>) {
      hn::Store(value(c), d, lanes);
      for (Index n = 0; n < std::min(kLanes<T>, columns - c); ++n) to[c + n] = lanes[n];
    }
  }
}

// Rows that the tiles can read where they lie.
template <class T>
bool rows_are_ready(View<const T, 4> rows) {
  return rows.stride(3) == 1 && rows.extent(3) % kLanes<T> == 0;
}

// Rows of an input for the right side of a product: where they lie, or copied in whole vectors.
template <class T>
class ReadyRows {
 public:
  ReadyRows(View<const T, 4> all, Index most_rows)
      : ready_(rows_are_ready(all)),
        stride(ready_ ? all.stride(2) : round_up(all.extent(3), kPanel)),
        most_(most_rows) {}
  std::size_t bytes() const { return ready_ ? 0 : Scratch::bytes_for<T>(most_ * stride); }
  void take_memory(Scratch& scratch) {
    if (!ready_) memory_ = scratch.take<T>(most_ * stride);
  }
  void load(View<const T, 2> from, Index begin, Index end) {
    if (!ready_) pack_rows(memory_, stride, from, begin, end);
    data = ready_ ? from.data() + begin * stride : memory_;
  }

 private:
  bool ready_;

 public:
  const T* data = nullptr;
  Index stride;

 private:
  Index most_;
  T* memory_ = nullptr;
};

// Panels of keys [begin, end) of one head, begin a multiple of kPanel: transposed rows, or the cache's panels widened.
template <class T>
void lay_out_keys(T* to, const FusedCall<T>& call, Index b, Index g, Index begin, Index end) {
  if (call.inputs.key_panels_bf16.empty()) {
    pack_panels(to, call.inputs.k[b][g], begin, end);
  } else {
    const Bfloat16* from = call.inputs.key_panels_bf16[b][g].data() + begin * call.shape.D;
    const Index count = round_up(end - begin, kPanel) * call.shape.D;
    for (Index n = 0; n < count; n += kLanes<T>) {
      hn::StoreU(load_widened<T>(from + n), hn::ScalableTag<T>(), to + n);
    }
  }
}

// Rows of its values [begin, end), `stride` apart, in whole vectors.
template <class T>
void lay_out_values(T* to, Index stride, const FusedCall<T>& call, Index b, Index g, Index begin, Index end) {
  if (call.inputs.v_bf16.empty()) {
    pack_rows(to, stride, call.inputs.v[b][g], begin, end);
  } else {
    pack_rows(to, stride, call.inputs.v_bf16[b][g], begin, end);
  }
}

// The keys and values of one chunk of one head: where they lie ready, else laid out here.
template <class T>
class ChunkOfKeys {
 public:
  ChunkOfKeys(const FusedCall<T>& call, Index b, Index g, const PackedHead<T>& packed)
      : call_(call),
        b_(b),
        g_(g),
        v_(call.head(call.inputs.v, b, g)),
        packed_(packed),
        ready_(!v_.empty() && rows_are_ready(call.inputs.v)) {}

  // What the chunk's own memory takes.
  std::size_t bytes() const {
    return (packed_.key_panels == nullptr ? Scratch::bytes_for<T>(key_elements()) : 0) +
           (packed_.values == nullptr && !ready_ ? Scratch::bytes_for<T>(value_elements()) : 0);
  }
  void take_memory(Scratch& scratch) {
    if (packed_.key_panels == nullptr) key_memory_ = scratch.take<T>(key_elements());
    if (packed_.values == nullptr && !ready_) value_memory_ = scratch.take<T>(value_elements());
  }

  // Each makes keys or values `needed` of the chunk that begins at key `chunk` available, unless they are.
  void load_keys(Index chunk, KeyRange needed) {
    if (std::exchange(keys_of_, chunk) == chunk) return;
    const Index D = call_.shape.D;
    if (packed_.key_panels != nullptr) {
      panels = packed_.key_panels + chunk * D;
    } else {
      const Index begin = std::max(needed.begin, chunk) / kPanel * kPanel, end = std::min(needed.end, chunk + kChunk);
      lay_out_keys(key_memory_ + (begin - chunk) * D, call_, b_, g_, begin, end);
      panels = key_memory_;
    }
  }
  void load_values(Index chunk, KeyRange needed) {
    if (std::exchange(values_of_, chunk) == chunk) return;
    if (packed_.values != nullptr) {
      value_stride = packed_.value_stride;
      values = packed_.values + chunk * value_stride;
    } else if (ready_) {
      value_stride = v_.stride(0);
      values = v_.data() + chunk * value_stride;
    } else {
      const Index begin = std::max(needed.begin, chunk), end = std::min(needed.end, chunk + kChunk);
      value_stride = round_up(call_.shape.E, kPanel);
      lay_out_values(value_memory_ + (begin - chunk) * value_stride, value_stride, call_, b_, g_, begin, end);
      values = value_memory_;
    }
  }

  const T* panels = nullptr;  // [16][D][16]
  const T* values = nullptr;  // [256][value_stride]
  Index value_stride = 0;

 private:
  Index key_elements() const { return std::min(kChunk, round_up(call_.shape.Tk, kPanel)) * call_.shape.D; }
  Index value_elements() const { return std::min(kChunk, call_.shape.Tk) * round_up(call_.shape.E, kPanel); }

  const FusedCall<T>& call_;
  Index b_, g_;
  View<const T, 2> v_;
  PackedHead<T> packed_;
  bool ready_;
  T *key_memory_ = nullptr, *value_memory_ = nullptr;
  Index keys_of_ = -1, values_of_ = -1;  // the chunks that are available
};

}  // namespace heedful::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEEDFUL_ATTENTION_FUSED_PACK_INL_H_
