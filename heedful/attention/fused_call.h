// What every piece of one call of fused attention reads, whatever the instruction set.
#ifndef HEEDFUL_ATTENTION_FUSED_CALL_H_
#define HEEDFUL_ATTENTION_FUSED_CALL_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <utility>

#include "heedful/attention/attention.h"
#include "heedful/attention/attention_shapes.h"
#include "heedful/attention/mask.h"

namespace heedful {

// Keys are worked through in chunks that begin at multiples of this, wherever a row begins to see: so a row's bits do
// not depend on which keys are hidden from it.
inline constexpr Index kChunk = 256;

// Rows whose scores on one chunk are under way at once, in strips; the 16: rows of a tile do not meet in the same set
// of the first cache.
inline constexpr Index kStripRows = 12, kStripStride = kChunk + 16;

// Bit n: is key n of the chunk visible?
using ChunkBits = std::array<std::uint64_t, kChunk / 64>;

inline bool is_visible(const ChunkBits& bits, Index n) {
  return bits[static_cast<std::size_t>(n / 64)] >> (n % 64) & 1;
}

// The smallest range that holds every visible key, {0, 0} where there is none.
inline KeyRange range_of(const ChunkBits& bits) {
  KeyRange range;
  for (std::size_t word = 0; word < bits.size(); ++word) {
    if (bits[word] == 0) continue;
    const Index base = static_cast<Index>(word) * 64;
    if (range.size() == 0) range.begin = base + std::countr_zero(bits[word]);
    range.end = base + 64 - std::countl_zero(bits[word]);
  }
  return range;
}

// The smallest range that holds both.
inline KeyRange hull(KeyRange a, KeyRange b) {
  if (a.size() <= 0) return b;
  if (b.size() <= 0) return a;
  return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

struct QueryRow {
  Index h, i;
  KeyRange keys;  // its range
};

// What a strip of rows sees of one chunk.
struct VisibleStrip {
  KeyRange keys;        // holds every key that any of them sees
  bool same = true;     // each of them sees all of `keys`
  bool masked = false;  // the bits are set, and to be read: the whole panels around `keys` have hidden keys
};

// Fills bits[r], if they are needed, for the `count` rows at `rows`.
template <class T>
VisibleStrip visible_strip(const AttentionMask<T>& mask, Index b, const QueryRow* rows, Index count, Index chunk,
                           std::span<ChunkBits> bits) {
  const auto in_chunk = [chunk](KeyRange keys) {
    return KeyRange{std::clamp(keys.begin - chunk, Index{0}, kChunk), std::clamp(keys.end - chunk, Index{0}, kChunk)};
  };
  VisibleStrip seen;
  KeyRange every{0, kChunk};
  for (Index r = 0; r < count; ++r) {
    const KeyRange keys = in_chunk(rows[r].keys);
    seen.keys = hull(seen.keys, keys);
    every = {std::max(every.begin, keys.begin), std::min(every.end, keys.end)};
  }
  if (seen.keys.size() == 0) return seen;
  seen.same = !mask.has_holes() && every.begin == seen.keys.begin && every.end == seen.keys.end;
  seen.masked = !seen.same || seen.keys.begin % kPanel != 0 || seen.keys.end % kPanel != 0;
  if (!seen.masked) return seen;
  seen.keys = {};
  for (Index r = 0; r < count; ++r) {
    ChunkBits& row = bits[static_cast<std::size_t>(r)];
    mask.visible_bits(row, b, rows[r].h, rows[r].i, chunk);
    seen.keys = hull(seen.keys, range_of(row));
  }
  return seen;
}

template <class T>
struct FusedCall {
  FusedCall(const AttentionInputs<T>& in, const AttentionOptions<T>& opt)
      : shape(check_attention(in, opt)),
        inputs(in),
        options(opt),
        mask(shape, opt),
        scale(static_cast<T>(score_scale(shape, opt))) {
    if (!opt.bias.empty()) bias = broadcast(opt.bias, {shape.B, shape.H, shape.Tq, shape.Tk});
    if (opt.empty_row == EmptyRow::refuse) mask.refuse_empty_rows();
  }

  // Rows of one key-value head, none where the input was not given.
  template <class S>
  View<const S, 2> head(const View<const S, 4>& input, Index b, Index g) const {
    return input.empty() ? View<const S, 2>() : input[b][g];
  }

  // The panels of one key-value head where they lie, null where there are none in T.
  const T* key_panels(Index b, Index g) const {
    return inputs.key_panels.empty() ? nullptr : inputs.key_panels[b][g].data();
  }

  AttentionShape shape;
  const AttentionInputs<T>& inputs;
  const AttentionOptions<T>& options;
  AttentionMask<T> mask;
  T scale;
  View<const T, 4> bias;  // [B, H, Tq, Tk], or empty
};

// Keys and values of one head that lie ready for the tiles; null where a task lays them out itself, chunk by chunk.
template <class T>
struct PackedHead {
  const T* key_panels = nullptr;  // [⌈Tk/16⌉][D][16]
  const T* values = nullptr;      // [Tk][value_stride]
  Index value_stride = 0;
};

constexpr Index round_up(Index n, Index step) {
  return (n + step - 1) / step * step;
}

// Calls work(i) for i in [0, count), started in ascending order.
template <class Work>
void in_order(const Context& context, Index count, const Work& work) {
  std::atomic<Index> next = 0;
  context.parallel_for(std::min<Index>(context.threads(), count), [&](Index) {
    for (Index i = next++; i < count; i = next++) work(i);
  });
}

// Uninitialised elements on a cache line. What is given back is kept for the thread's next request of that type and
// use, so that the same step again allocates nothing.
template <class T, int kUse = 0>
class Memory {
 public:
  explicit Memory(Index count) : buffer_(std::exchange(kept, {})) {
    if (buffer_.size() >= count) return;
    buffer_ = {};  // first: both at once would be the peak
    buffer_ = Buffer(count);
  }
  ~Memory() { kept = std::move(buffer_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  T* data() const { return buffer_.data(); }

 private:
  class Buffer {
   public:
    Buffer() = default;
    explicit Buffer(Index count)
        : data_(static_cast<T*>(::operator new(static_cast<std::size_t>(count) * sizeof(T), kAlignment))),
          size_(count) {}
    Index size() const { return size_; }
    T* data() const { return data_.get(); }

   private:
    static constexpr std::align_val_t kAlignment{64};
    struct Free {
      void operator()(T* data) const { ::operator delete(data, kAlignment); }
    };
    std::unique_ptr<T, Free> data_;
    Index size_ = 0;
  };

  static thread_local inline Buffer kept;
  Buffer buffer_;
};

// Memory of one task: the first kInline bytes lie on the stack, so that small problems ask the allocator for nothing.
class Scratch {
 public:
  // Room for what take() is asked for later, in all.
  explicit Scratch(std::size_t bytes) {
    if (bytes > kInline) {
      heap_.emplace(static_cast<Index>(bytes));
      next_ = heap_->data();
    }
  }
  template <class T>
  static std::size_t bytes_for(Index count) {
    return (static_cast<std::size_t>(count) * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
  }
  template <class T>
  T* take(Index count) {
    T* result = reinterpret_cast<T*>(next_);
    next_ += bytes_for<T>(count);
    return result;
  }

 private:
  static constexpr std::size_t kAlignment = 64, kInline = std::size_t{192} << 10;
  alignas(kAlignment) std::byte inline_[kInline];
  std::optional<Memory<std::byte>> heap_;
  std::byte* next_ = inline_;
};

}  // namespace heedful

#endif  // HEEDFUL_ATTENTION_FUSED_CALL_H_
