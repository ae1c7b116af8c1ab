#include "heedful/attention/mask.h"

#include <algorithm>
#include <limits>

#include "heedful/core/error.h"

namespace heedful {

template <class T>
AttentionMask<T>::AttentionMask(const AttentionShape& shape, const AttentionOptions<T>& options)
    : shape_(shape),
      alignment_(options.alignment),
      causal_(options.causal),
      window_(std::min(options.window, Index{1} << 60)),  // as good as infinite, and position ± window fits
      query_offsets_(options.query_offsets),
      key_lengths_(options.key_lengths),
      query_documents_(options.query_documents),
      key_documents_(options.key_documents) {
  const Extents<4> pairs{shape.B, shape.H, shape.Tq, shape.Tk};
  if (!options.keep.empty()) keep_ = broadcast(options.keep, pairs);
  if (!options.bias.empty()) bias_ = broadcast(options.bias, pairs);
}

template <class T>
Index AttentionMask<T>::offset(Index b) const {
  switch (alignment_) {
    case Alignment::square:
    case Alignment::top_left:
      return 0;
    case Alignment::bottom_right:
      return shape_.Tk - shape_.Tq;
    case Alignment::offsets:
      return query_offsets_[b];
  }
  return 0;
}

template <class T>
KeyRange AttentionMask<T>::range(Index b, Index i) const {
  KeyRange range{0, key_lengths_.empty() ? shape_.Tk : key_lengths_[b]};
  const Index p = position(b, i);
  if (causal_) range.end = std::min(range.end, p + 1);
  if (window_ > 0) {
    range.begin = std::max(range.begin, p - window_ + 1);
    range.end = std::min(range.end, p + window_);
  }
  return range.begin < range.end ? range : KeyRange{};
}

template <class T>
bool AttentionMask<T>::is_hole(Index b, Index h, Index i, Index j) const {
  if (!keep_.empty() && !keep_(b, h, i, j)) return true;
  if (!query_documents_.empty() && query_documents_(b, i) != key_documents_(b, j)) return true;
  return !bias_.empty() && bias_(b, h, i, j) == -std::numeric_limits<T>::infinity();
}

namespace {

constexpr Index kWordBits = 64;

// The bits [begin, end) of a word, both anywhere.
std::uint64_t bits_between(Index begin, Index end) {
  begin = std::max(begin, Index{0});
  end = std::min(end, kWordBits);
  if (begin >= end) return 0;
  return (~std::uint64_t{0} >> (kWordBits - (end - begin))) << begin;
}

// Clears the bits of [begin, end) whose key `is_hidden`.
template <class IsHidden>
void clear_hidden(std::uint64_t& word, Index begin, Index end, const IsHidden& is_hidden) {
  for (Index n = begin; n < end; ++n) word &= ~(std::uint64_t{is_hidden(n)} << n);
}

}  // namespace

template <class T>
void AttentionMask<T>::visible_bits(std::span<std::uint64_t> words, Index b, Index h, Index i, Index begin) const {
  const KeyRange row = range(b, i);
  for (std::uint64_t& word : words) {
    const Index first = std::max(row.begin - begin, Index{0}), last = std::min(row.end - begin, kWordBits);
    word = bits_between(first, last);
    if (word != 0 && !keep_.empty()) {
      const bool* keep = &keep_(b, h, i, begin);
      clear_hidden(word, first, last, [keep, step = keep_.stride(3)](Index n) { return !keep[n * step]; });
    }
    if (word != 0 && !query_documents_.empty()) {
      const Index* documents = &key_documents_(b, begin);
      clear_hidden(word, first, last,
                   [documents, step = key_documents_.stride(1), own = query_documents_(b, i)](Index n) {
                     return documents[n * step] != own;
                   });
    }
    if (word != 0 && !bias_.empty()) {
      const T* bias = &bias_(b, h, i, begin);
      clear_hidden(word, first, last, [bias, step = bias_.stride(3)](Index n) {
        return bias[n * step] == -std::numeric_limits<T>::infinity();
      });
    }
    begin += kWordBits;
  }
}

template <class T>
void AttentionMask<T>::refuse_empty_rows() const {
  const bool same_everywhere = !has_holes() && key_lengths_.empty() && query_offsets_.empty();
  for (Index b = 0; b < (same_everywhere ? std::min(Index{1}, shape_.B) : shape_.B); ++b) {
    for (Index i = 0; i < shape_.Tq; ++i) {
      const KeyRange all = range(b, i);
      for (Index h = 0; h < (has_holes() ? shape_.H : 1); ++h) {
        Index j = all.begin;
        while (j < all.end && is_hole(b, h, i, j)) ++j;
        require(j < all.end, "attention",
                "mask: expected every query to see a key, got none for query {} of head {} in sequence {} "
                "(EmptyRow::zero allows it)",
                i, h, b);
      }
    }
  }
}

template class AttentionMask<float>;
template class AttentionMask<double>;

}  // namespace heedful
