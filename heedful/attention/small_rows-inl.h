// What both passes of a small head share: which keys its queries see, and the writing of its rows.
#if defined(HEEDFUL_ATTENTION_SMALL_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEEDFUL_ATTENTION_SMALL_ROWS_INL_H_
#undef HEEDFUL_ATTENTION_SMALL_ROWS_INL_H_
#else
#define HEEDFUL_ATTENTION_SMALL_ROWS_INL_H_
#endif

#include <array>

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
          (std::uint64_t{1} << keys.end) - (std::uint64_t{1} << keys.begin);  // begin ≤ end ≤ 16
    }
  }
  const ChunkBits* bits() const { return bits_.data(); }
  bool sees_any(Index i) const { return bits_[static_cast<std::size_t>(i)][0] != 0; }

 private:
  const FusedCall<T>& call_;
  const bool differs_;
  Index b_ = -1;
  std::array<ChunkBits, kPanel> bits_{};
};

// to[r][c] = value(r, c) of each vector from c on.
template <class T, class Value>
void write_small_rows(View<T, 2> to, const Value& value) {
  const hn::ScalableTag<T> d;
  const Index rows = to.extent(0), columns = to.extent(1);
  if (to.stride(1) != 1) {
    for (Index r = 0; r < rows; ++r) write_row<T>(to[r], [&](Index c) HWY_ATTR { return value(r, c); });
    return;
  }
  const Index whole = columns / kLanes<T> * kLanes<T>;
  for (Index r = 0; r < rows; ++r) {
    T* row = to.data() + r * to.stride(0);
    for (Index c = 0; c < whole; c += kLanes<T>) hn::StoreU(value(r, c), d, row + c);
    if (whole < columns) StoreFirst(value(r, whole), d, row + whole, static_cast<size_t>(columns - whole));
  }
}

}  // namespace heedful::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEEDFUL_ATTENTION_SMALL_ROWS_INL_H_
