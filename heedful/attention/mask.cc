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

template <class T>
void AttentionMask<T>::visible_runs(std::vector<KeyRange>& runs, Index b, Index h, Index i) const {
  runs.clear();
  const KeyRange all = range(b, i);
  if (!has_holes()) {
    if (all.size() > 0) runs.push_back(all);
    return;
  }
  for (Index j = all.begin; j < all.end; ++j) {
    if (is_hole(b, h, i, j)) continue;
    if (runs.empty() || runs.back().end != j) runs.push_back({j, j});
    ++runs.back().end;
  }
}

template <class T>
KeyRange AttentionMask<T>::range_of_batch(Index b) const {
  KeyRange all;
  for (Index i = 0; i < shape_.Tq; ++i) {
    const KeyRange row = range(b, i);
    if (row.size() == 0) continue;
    all = all.size() == 0 ? row : KeyRange{std::min(all.begin, row.begin), std::max(all.end, row.end)};
  }
  return all;
}

template <class T>
void AttentionMask<T>::refuse_empty_rows() const {
  for (Index b = 0; b < shape_.B; ++b) {
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
