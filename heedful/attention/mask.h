// The one answer to "which keys may query (b, h, i) see?". A key is seen when
//     it lies in the row's range    [begin, end): key length, causality j ≤ p(i), window |p(i) − j| < W
//     and nothing in it hides it    keep(b, h, i, j), the same document, bias(b, h, i, j) ≠ −∞
// The first part is the same for every head and costs nothing per key; the second exists only where has_holes().
// Every path of attention asks here, so they cannot disagree. The options must have passed check_attention.
#ifndef HEEDFUL_ATTENTION_MASK_H_
#define HEEDFUL_ATTENTION_MASK_H_

#include <cstdint>
#include <span>

#include "heedful/attention/attention_shapes.h"

namespace heedful {

struct KeyRange {
  Index begin = 0, end = 0;

  Index size() const { return end - begin; }
  bool contains(Index j) const { return begin <= j && j < end; }
};

template <class T>
class AttentionMask {
 public:
  AttentionMask(const AttentionShape& shape, const AttentionOptions<T>& options);

  Index position(Index b, Index i) const { return offset(b) + i; }
  KeyRange range(Index b, Index i) const;  // {0, 0} where no key is left
  bool has_holes() const { return !keep_.empty() || !query_documents_.empty() || !bias_.empty(); }
  bool sees(Index b, Index h, Index i, Index j) const { return range(b, i).contains(j) && !is_hole(b, h, i, j); }

  // Bit n of words[n / 64] says whether the row sees key begin + n.
  void visible_bits(std::span<std::uint64_t> words, Index b, Index h, Index i, Index begin) const;

  // Throws Error naming the first row that sees no key.
  void refuse_empty_rows() const;

 private:
  Index offset(Index b) const;
  bool is_hole(Index b, Index h, Index i, Index j) const;  // j inside the range

  AttentionShape shape_;
  Alignment alignment_;
  bool causal_;
  Index window_;
  View<const Index, 1> query_offsets_, key_lengths_;
  View<const Index, 2> query_documents_, key_documents_;
  View<const bool, 4> keep_;  // [B, H, Tq, Tk] by broadcast, as is
  View<const T, 4> bias_;
};

}  // namespace heedful

#endif  // HEEDFUL_ATTENTION_MASK_H_
