// One block of queries on the heads of one key-value head, chunk of keys by chunk of keys: products, softmax, values.
#if defined(HEEDFUL_ATTENTION_FUSED_FORWARD_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEEDFUL_ATTENTION_FUSED_FORWARD_BLOCK_INL_H_
#undef HEEDFUL_ATTENTION_FUSED_FORWARD_BLOCK_INL_H_
#else
#define HEEDFUL_ATTENTION_FUSED_FORWARD_BLOCK_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <limits>

#include "heedful/attention/fused_forward_task.h"
#include "heedful/attention/fused_pack-inl.h"
#include "heedful/attention/fused_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heedful::HWY_NAMESPACE {

template <class T>
class ForwardBlock {
 public:
  ForwardBlock(const FusedCall<T>& call, const ForwardTask<T>& task, const AttentionOutputs<T>& outputs)
      : call_(call),
        task_(task),
        outputs_(outputs),
        group_(call.shape.H / call.shape.G),
        rows_((task.last_query - task.first_query) * group_),
        strips_((rows_ + kStripRows - 1) / kStripRows),
        columns_(round_up(call.shape.E, kLanes<T>)),
        out_stride_(round_up(call.shape.E, kPanel)),
        chunk_(call, task.b, task.g, task.packed),
        scratch_(bytes()) {
    row_ = scratch_.take<QueryRow>(rows_);
    queries_ = scratch_.take<T>(strips_ * call.shape.D * kPanel);
    state_ = {scratch_.take<T>(rows_ * out_stride_), scratch_.take<T>(rows_), scratch_.take<T>(rows_)};
    scores_ = scratch_.take<T>(kStripRows * kStripStride);
    products_ = scratch_.take<T>(kStripRows * out_stride_);
    chunk_.take_memory(scratch_);
    for (Index r = 0; r < rows_; ++r) {
      const Index i = task_.first_query + r / group_;
      row_[r] = {task_.g * group_ + r % group_, i, call_.mask.range(task_.b, i)};
      keys_ = hull(keys_, row_[r].keys);
    }
    std::fill_n(state_.out, rows_ * out_stride_, T{0});
    std::fill_n(state_.max, rows_, -std::numeric_limits<T>::infinity());
    std::fill_n(state_.sum, rows_, T{0});
  }

  void run(ForwardPart part) {
    switch (part) {
      case ForwardPart::whole:
        pack_queries();
        for (Index chunk = keys_.begin / kChunk * kChunk; chunk < keys_.end;) {
          const Index chunks = chunks_at_once(chunk);
          attend(chunk, chunks);
          chunk += chunks * kChunk;
        }
        finish();
        break;
      case ForwardPart::chunk:
        pack_queries();
        attend(task_.chunk, 1);
        std::copy_n(state_.out, rows_ * out_stride_, task_.partials.out + part_index() * out_stride_);
        std::copy_n(state_.max, rows_, task_.partials.max + part_index());
        std::copy_n(state_.sum, rows_, task_.partials.sum + part_index());
        break;
      case ForwardPart::join:
        for (Index part_row = 0; part_row < round_up(call_.shape.Tk, kChunk) / kChunk * rows_; part_row += rows_) {
          for (Index r = 0; r < rows_; r += kStripRows) {
            merge(state_of(state_, r), state_of(task_.partials, part_row + r), std::min(kStripRows, rows_ - r));
          }
        }
        finish();
    }
  }

 private:
  std::size_t bytes() const {
    return Scratch::bytes_for<QueryRow>(rows_) + Scratch::bytes_for<T>(strips_ * call_.shape.D * kPanel) +
           Scratch::bytes_for<T>(rows_ * out_stride_) + 2 * Scratch::bytes_for<T>(rows_) +
           Scratch::bytes_for<T>(kStripRows * kStripStride) + Scratch::bytes_for<T>(kStripRows * out_stride_) +
           chunk_.bytes();
  }
  Index part_index() const { return task_.chunk / kChunk * rows_; }
  RowState<T> state_of(const RowState<T>& state, Index row) const {
    return {state.out + row * out_stride_, state.max + row, state.sum + row};
  }

  void pack_queries() {
    for (Index strip = 0; strip < strips_; ++strip) {
      std::array<const T*, kPanel> rows{};
      for (Index r = 0; r < std::min(kStripRows, rows_ - strip * kStripRows); ++r) {
        const QueryRow& row = row_[strip * kStripRows + r];
        rows[static_cast<std::size_t>(r)] = &call_.inputs.q(task_.b, row.h, row.i, 0);
      }
      pack_panel(queries_ + strip * call_.shape.D * kPanel, rows, call_.inputs.q.stride(3), call_.shape.D);
    }
  }

  // A few rows take several chunks at once, as further rows of their strip, where they see all of those: every turn
  // from keys to weights to values leaves memory idle, and one row's softmax alone is a chain. One row from the second
  // cache takes 6 % less time so, from the third 2 %.
  Index chunks_at_once(Index chunk) const {
    const Index most = kStripRows / rows_;
    if (most < 2 || call_.mask.has_holes()) return 1;
    KeyRange every{0, call_.shape.Tk};
    for (Index r = 0; r < rows_; ++r) {
      every = {std::max(every.begin, row_[r].keys.begin), std::min(every.end, row_[r].keys.end)};
    }
    return chunk < every.begin ? 1 : std::clamp((every.end - chunk) / kChunk, Index{1}, most);
  }

  void attend(Index chunk, Index chunks) {
    if (keys_.end <= chunk || chunk + kChunk <= keys_.begin) return;
    for (Index strip = 0; strip < strips_; ++strip) attend_strip(chunk, chunks, strip * kStripRows);
  }

  // Row c·count + r of the strip is query r on the c-th of the chunks.
  void attend_strip(Index chunk, Index chunks, Index first_row) {
    const Index D = call_.shape.D, count = std::min(kStripRows, rows_ - first_row);
    const VisibleStrip seen = chunks > 1 ? VisibleStrip{.keys = {0, kChunk}}
                                         : visible_strip(call_.mask, task_.b, row_ + first_row, count, chunk, bits_);
    if (seen.keys.size() == 0) return;
    const KeyRange panels{seen.keys.begin / kPanel * kPanel, round_up(seen.keys.end, kPanel)};
    for (Index c = 0; c < chunks; ++c) {
      T* scores = scores_ + c * count * kStripStride;
      chunk_.load_keys(chunk + c * kChunk, keys_);
      product<1, Store::assign>(scores + panels.begin, kStripStride, count, panels.size(),
                                Factor<T>{queries_ + first_row / kStripRows * D * kPanel, kPanel},
                                Factor<T>{chunk_.panels + panels.begin * D, kPanel, D * kPanel}, D, call_.scale);
      for (Index r = 0; r < count; ++r) {
        finish_row(scores + r * kStripStride, row_[first_row + r], chunk + c * kChunk, panels);
      }
    }
    HWY_ALIGN T max[kPanel], sum[kPanel];
    if (seen.masked) {
      softmax_strip<true>(max, sum, scores_, count * chunks, panels, bits_.data());
    } else {
      softmax_strip<false>(max, sum, scores_, count * chunks, panels, bits_.data());
    }
    for (Index c = 0; c < chunks; ++c) {
      chunk_.load_values(chunk + c * kChunk, keys_);
      product<kStripStride, Store::assign>(
          products_ + c * count * out_stride_, out_stride_, count, columns_,
          Factor<T>{scores_ + c * count * kStripStride + seen.keys.begin, 1},
          Factor<T>{chunk_.values + seen.keys.begin * chunk_.value_stride, chunk_.value_stride}, seen.keys.size());
    }
    for (Index r = 0; r < count && !seen.same; ++r) {
      T* out = products_ + r * out_stride_;
      if (all_finite(out, columns_)) continue;
      sum_visible_values(out, scores_ + r * kStripStride, chunk_.values, chunk_.value_stride, columns_, seen.keys,
                         bits_[static_cast<std::size_t>(r)]);
    }
    for (Index r = 0; r < count * chunks; r += count) {
      merge(state_of(state_, first_row), {products_ + r * out_stride_, max + r, sum + r}, count);
    }
  }

  void finish_row(T* x, const QueryRow& row, Index chunk, KeyRange panels) {
    finish_scores<T>(call_, x, nullptr, row, task_.b, chunk, panels);
    if (!outputs_.scores.empty() || !outputs_.weights.empty()) write_scores(x, row, chunk, panels);
  }

  void write_scores(const T* x, const QueryRow& row, Index chunk, KeyRange keys) {
    const View<T, 1> to = (outputs_.scores.empty() ? outputs_.weights : outputs_.scores)[task_.b][row.h][row.i];
    const Index end = std::min(keys.end, call_.shape.Tk - chunk);
    for (Index n = keys.begin; n < end; ++n) to[chunk + n] = x[n];
  }

  // to ← to joined by the softmax of one more chunk.
  void merge(const RowState<T>& to, const RowState<T>& from, Index count) {
    const hn::ScalableTag<T> d;
    HWY_ALIGN T shrink[2 * kPanel] = {};  // of what was, of what comes
    T* grow = shrink + kPanel;
    for (Index r = 0; r < count; ++r) {
      const T max = std::max(to.max[r], from.max[r]);
      const T shift = max == -std::numeric_limits<T>::infinity() ? 0 : max;
      shrink[r] = to.max[r] - shift;
      grow[r] = from.max[r] - shift;
      to.max[r] = max;
    }
    for (Index r = 0; r < 2 * kPanel; r += kLanes<T>) {
      hn::Store(ExpFlushed(d, hn::Load(d, shrink + r)), d, shrink + r);
    }
    for (Index r = 0; r < count; ++r) {
      to.sum[r] = std::fma(from.sum[r], grow[r], to.sum[r] * shrink[r]);
      const auto a = hn::Set(d, shrink[r]), b = hn::Set(d, grow[r]);
      T* out = to.out + r * out_stride_;
      const T* add = from.out + r * out_stride_;
      for (Index c = 0; c < columns_; c += kLanes<T>) {
        hn::Store(Fma(hn::Load(d, add + c), b, hn::Mul(hn::Load(d, out + c), a)), d, out + c);
      }
    }
  }

  void finish() {
    const hn::ScalableTag<T> d;
    for (Index r = 0; r < rows_; ++r) {
      const auto& [h, i, keys] = row_[r];
      const bool empty = state_.sum[r] == 0 && sees_nothing(row_[r]);
      const T max = state_.max[r] + 0;  // not −0
      const T sum = state_.sum[r];
      const T* out = state_.out + r * out_stride_;
      const auto divisor = hn::Set(d, empty ? T{1} : sum);
      // + 0: a sum of −0 comes out as 0, whichever zeros were added to it.
      write_row<T>(outputs_.out[task_.b][h][i],
                   [&](Index c) HWY_ATTR { return hn::Add(hn::Div(hn::Load(d, out + c), divisor), hn::Zero(d)); });
      if (!outputs_.row_max.empty()) {
        outputs_.row_max(task_.b, h, i) = max;
        outputs_.row_sum(task_.b, h, i) = sum;
      }
      if (!outputs_.log_sum_exp.empty()) {
        outputs_.log_sum_exp(task_.b, h, i) = empty ? -std::numeric_limits<T>::infinity() : max + std::log(sum);
      }
      if (!outputs_.weights.empty() || !outputs_.scores.empty()) finish_pairs(row_[r], max, sum);
    }
  }

  bool sees_nothing(const QueryRow& row) const {
    for (Index chunk = row.keys.begin / kChunk * kChunk; chunk < row.keys.end; chunk += kChunk) {
      ChunkBits bits;
      call_.mask.visible_bits(bits, task_.b, row.h, row.i, chunk);
      if (range_of(bits).size() > 0) return false;
    }
    return true;
  }

  // The visible scores were left in `scores`, or in `weights` if those were not asked for.
  void finish_pairs(const QueryRow& row, T max, T sum) {
    const hn::ScalableTag<T> d;
    const bool has_scores = !outputs_.scores.empty(), has_weights = !outputs_.weights.empty();
    const View<T, 1> scores = (has_scores ? outputs_.scores : outputs_.weights)[task_.b][row.h][row.i];
    const View<T, 1> weights = (has_weights ? outputs_.weights : outputs_.scores)[task_.b][row.h][row.i];
    for (Index chunk = 0; chunk < call_.shape.Tk; chunk += kChunk) {
      ChunkBits bits;
      call_.mask.visible_bits(bits, task_.b, row.h, row.i, chunk);
      const Index count = std::min(kChunk, call_.shape.Tk - chunk);
      HWY_ALIGN T weight[kChunk] = {};
      for (Index n = 0; n < count; ++n) {
        if (is_visible(bits, n)) weight[n] = scores[chunk + n] - max;
      }
      for (Index n = 0; n < kChunk; n += kLanes<T>) {
        hn::Store(hn::Div(ExpFlushed(d, hn::Load(d, weight + n)), hn::Set(d, sum)), d, weight + n);
      }
      for (Index n = 0; n < count; ++n) {
        const bool visible = is_visible(bits, n);
        if (has_scores && !visible) scores[chunk + n] = -std::numeric_limits<T>::infinity();
        if (has_weights) weights[chunk + n] = visible ? weight[n] : 0;
      }
    }
  }

  const FusedCall<T>& call_;
  const ForwardTask<T>& task_;
  const AttentionOutputs<T>& outputs_;
  const Index group_, rows_, strips_, columns_, out_stride_;
  KeyRange keys_;  // that any row of the block may see
  ChunkOfKeys<T> chunk_;
  Scratch scratch_;
  QueryRow* row_;      // [rows]
  T* queries_;         // [strips][D][16]
  RowState<T> state_;  // [rows]
  T* scores_;          // [12][kStripStride]
  T* products_;        // [12][out_stride]
  std::array<ChunkBits, kStripRows> bits_;
};

}  // namespace heedful::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEEDFUL_ATTENTION_FUSED_FORWARD_BLOCK_INL_H_
