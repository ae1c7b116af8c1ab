// One thread's work in the backward pass of fused attention: chunks of keys, one after another, each against the
// queries that see it. The chunk's dk and dv stay here until it is done; dq goes on where the chunk before left it.
#if defined(HEEDFUL_ATTENTION_FUSED_BACKWARD_WORKER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEEDFUL_ATTENTION_FUSED_BACKWARD_WORKER_INL_H_
#undef HEEDFUL_ATTENTION_FUSED_BACKWARD_WORKER_INL_H_
#else
#define HEEDFUL_ATTENTION_FUSED_BACKWARD_WORKER_INL_H_
#endif

#include <algorithm>
#include <array>
#include <thread>

#include "heedful/attention/fused_backward_call.h"
#include "heedful/attention/fused_pack-inl.h"
#include "heedful/attention/fused_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heedful::HWY_NAMESPACE {

// Whole vectors of a row of `columns`.
template <class T>
Index vectors_of(Index columns) {
  return round_up(columns, kLanes<T>);
}

template <class T>
class BackwardWorker {
 public:
  explicit BackwardWorker(const BackwardCall<T>& call)
      : call_(call),
        shape_(call.fused.shape),
        d_stride_(round_up(shape_.D, kPanel)),
        e_stride_(round_up(shape_.E, kPanel)),
        chunk_keys_(std::min(kChunk, round_up(shape_.Tk, kPanel))),
        dq_in_place_(call.gradients.dq.stride(3) == 1 && shape_.D % kLanes<T> == 0),
        key_rows_(call.fused.inputs.k, std::min(kChunk, shape_.Tk)),
        query_rows_(call.fused.inputs.q, kTileQueries),
        dout_rows_(call.dout, kTileQueries),
        scratch_(bytes()) {
    key_panels_ = scratch_.take<T>(chunk_keys_ * shape_.D);
    value_panels_ = scratch_.take<T>(chunk_keys_ * shape_.E);
    dk_ = scratch_.take<T>(chunk_keys_ * d_stride_);
    dv_ = scratch_.take<T>(chunk_keys_ * e_stride_);
    query_panels_ = scratch_.take<T>(kTileStrips * shape_.D * kPanel);
    dout_panels_ = scratch_.take<T>(kTileStrips * shape_.E * kPanel);
    out_panel_ = scratch_.take<T>(shape_.E * kPanel);
    weights_ = scratch_.take<T>(kTileQueries * kPairStride);
    dscores_ = scratch_.take<T>(kTileQueries * kPairStride);
    if (softcap()) cap_slopes_ = scratch_.take<T>(kTileQueries * kPairStride);
    if (!dq_in_place_) dq_tile_ = scratch_.take<T>(kTileQueries * d_stride_);
    key_rows_.take_memory(scratch_);
    query_rows_.take_memory(scratch_);
    dout_rows_.take_memory(scratch_);
  }

  // One chunk of key-value head g of sequence b.
  void run(Index b, Index g, Index chunk) {
    b_ = b, g_ = g, chunk_ = chunk * kChunk;
    const Index keys = std::min(kChunk, shape_.Tk - chunk_);
    load_chunk(keys);
    std::fill_n(dk_, keys * d_stride_, T{0});
    std::fill_n(dv_, keys * e_stride_, T{0});
    const Index group = shape_.H / shape_.G;
    for (Index h = g * group; h < (g + 1) * group; ++h) {
      for (Index tile = 0; tile < call_.tiles; ++tile) visit(h, tile, chunk);
    }
    write_rows(call_.gradients.dk[b][g], chunk_, keys, dk_, d_stride_);
    write_rows(call_.gradients.dv[b][g], chunk_, keys, dv_, e_stride_);
  }

 private:
  bool softcap() const { return call_.fused.options.softcap > 0; }
  std::size_t bytes() const {
    const auto elements = [](Index count) { return Scratch::bytes_for<T>(count); };
    return elements(chunk_keys_ * shape_.D) + elements(chunk_keys_ * shape_.E) + elements(chunk_keys_ * d_stride_) +
           elements(chunk_keys_ * e_stride_) + elements(kTileStrips * shape_.D * kPanel) +
           elements(kTileStrips * shape_.E * kPanel) + elements(shape_.E * kPanel) +
           (softcap() ? 3 : 2) * elements(kTileQueries * kPairStride) +
           (dq_in_place_ ? 0 : elements(kTileQueries * d_stride_)) + key_rows_.bytes() + query_rows_.bytes() +
           dout_rows_.bytes();
  }

  void load_chunk(Index keys) {
    const View<const T, 2> k = call_.fused.inputs.k[b_][g_], v = call_.fused.inputs.v[b_][g_];
    pack_panels(key_panels_, k, chunk_, chunk_ + keys);
    pack_panels(value_panels_, v, chunk_, chunk_ + keys);
    key_rows_.load(k, chunk_, chunk_ + keys);
    keys_finite_ = all_finite(key_panels_, round_up(keys, kPanel) * shape_.D);
  }

  // One tile of queries of head h, when the chunks before have left it.
  void visit(Index h, Index tile, Index chunk) {
    first_query_ = tile * kTileQueries;
    queries_ = std::min(kTileQueries, shape_.Tq - first_query_);
    const Index row = (b_ * shape_.H + h) * shape_.Tq + first_query_;
    std::atomic<Index>* done =
        call_.chunks_done == nullptr ? nullptr : call_.chunks_done + (b_ * shape_.H + h) * call_.tiles + tile;
    while (done != nullptr && done->load(std::memory_order_acquire) != chunk) std::this_thread::yield();

    const View<T, 2> dq = call_.gradients.dq[b_][h];
    dq_ = dq_in_place_ ? dq.data() + first_query_ * dq.stride(0) : dq_tile_;
    dq_stride_ = dq_in_place_ ? dq.stride(0) : d_stride_;
    if (!dq_in_place_ && call_.dq_sums != nullptr) dq_ = call_.dq_sums + row * d_stride_;
    T* means = call_.means == nullptr ? means_ : call_.means + row;
    if (chunk == 0) {
      for (Index r = 0; r < queries_; ++r) std::fill_n(dq_ + r * dq_stride_, vectors_of<T>(shape_.D), T{0});
      find_means(means, h);
    }
    if (find_visible(h)) {
      load_queries(h, means);
      for (Index n = 0; n < kChunk; n += kTileKeys) add_pairs(h, n);
    }
    if (chunk == call_.chunks - 1) write_rows(dq, first_query_, queries_, dq_, dq_stride_);
    if (done != nullptr) done->store(chunk + 1, std::memory_order_release);
  }

  Index strip_rows(Index strip) const { return std::min(kStripRows, queries_ - strip * kStripRows); }
  Index strips() const { return (queries_ + kStripRows - 1) / kStripRows; }

  // The rows of a strip as the rows of a panel.
  void pack_strip(T* panel, View<const T, 2> from, Index strip) const {
    std::array<const T*, kPanel> rows{};
    for (Index r = 0; r < strip_rows(strip); ++r) {
      rows[static_cast<std::size_t>(r)] = &from(first_query_ + strip * kStripRows + r, Index{0});
    }
    pack_panel(panel, rows, from.stride(1), from.extent(1));
  }

  // means[r] = Σ_e dout·out, which is Σ_j P·dP.
  void find_means(T* means, Index h) {
    const hn::ScalableTag<T> d;
    for (Index strip = 0; strip < strips(); ++strip) {
      T* dout = dout_panels_;
      pack_strip(dout, call_.dout[b_][h], strip);
      pack_strip(out_panel_, call_.saved.out[b_][h], strip);
      HWY_ALIGN T sums[kPanel];
      for (Index r = 0; r < kPanel; r += kLanes<T>) {
        auto sum = hn::Zero(d);
        for (Index e = 0; e < shape_.E; ++e) {
          sum = Fma(hn::Load(d, dout + e * kPanel + r), hn::Load(d, out_panel_ + e * kPanel + r), sum);
        }
        hn::Store(sum, d, sums + r);
      }
      std::copy_n(sums, strip_rows(strip), means + strip * kStripRows);
    }
  }

  // What each strip sees of the chunk; whether any sees something.
  bool find_visible(Index h) {
    bool any = false;
    for (Index strip = 0; strip < strips(); ++strip) {
      const Index first = strip * kStripRows, count = strip_rows(strip);
      for (Index r = first; r < first + count; ++r) {
        const Index i = first_query_ + r;
        rows_[at(r)] = {h, i, call_.fused.mask.range(b_, i)};
      }
      seen_[at(strip)] = visible_strip(call_.fused.mask, b_, &rows_[at(first)], count, chunk_,
                                       std::span(bits_).subspan(at(first), at(count)));
      any = any || seen_[at(strip)].keys.size() > 0;
    }
    return any;
  }

  void load_queries(Index h, const T* means) {
    const View<const T, 2> q = call_.fused.inputs.q[b_][h], dout = call_.dout[b_][h];
    for (Index strip = 0; strip < strips(); ++strip) {
      pack_strip(query_panels_ + strip * shape_.D * kPanel, q, strip);
      pack_strip(dout_panels_ + strip * shape_.E * kPanel, dout, strip);
    }
    query_rows_.load(q, first_query_, first_query_ + queries_);
    dout_rows_.load(dout, first_query_, first_query_ + queries_);
    finite_ = keys_finite_ && all_finite(query_panels_, strips() * shape_.D * kPanel) &&
              all_finite(dout_panels_, strips() * shape_.E * kPanel);
    for (Index r = 0; r < queries_; ++r) {
      const Index i = first_query_ + r;
      statistics_[at(r)] = {call_.saved.row_max(b_, h, i), 1 / call_.saved.row_sum(b_, h, i), means[r]};
    }
  }

  // The pairs of the tile's queries and keys [first, first + kTileKeys) of the chunk.
  void add_pairs(Index h, Index first) {
    std::array<KeyRange, kTileStrips> keys{};  // seen by the strip, from `first` on
    Index begin = kTileStrips, end = 0;        // the strips that see any
    bool hides = false;
    for (Index strip = 0; strip < strips(); ++strip) {
      const VisibleStrip& seen = seen_[at(strip)];
      const KeyRange own{std::max(seen.keys.begin - first, Index{0}), std::min(seen.keys.end - first, kTileKeys)};
      if (own.size() <= 0) continue;
      keys[at(strip)] = own;
      begin = std::min(begin, strip), end = strip + 1;
      hides = hides || seen.masked;
    }
    for (Index strip = begin; strip < end; ++strip) find_pairs(h, strip, first, keys[at(strip)]);
    if (hides && !finite_) {
      add_visible_pairs(first);
      return;
    }
    add_to_keys(first, begin, end, keys);
    for (Index strip = begin; strip < end; ++strip) {
      const KeyRange& own = keys[at(strip)];
      const Index row = strip * kStripRows;
      product<kPairStride, Store::add>(
          dq_ + row * dq_stride_, dq_stride_, strip_rows(strip), vectors_of<T>(shape_.D),
          Factor<T>{dscores_ + row * kPairStride + own.begin, 1},
          Factor<T>{key_rows_.data + (first + own.begin) * key_rows_.stride, key_rows_.stride}, own.size());
    }
  }

  static KeyRange panels_of(KeyRange keys) { return {keys.begin / kPanel * kPanel, round_up(keys.end, kPanel)}; }

  // P and scale·dS of a strip, 0 where hidden and around what it sees.
  void find_pairs(Index h, Index strip, Index first, KeyRange keys) {
    const KeyRange panels = keys.size() > 0 ? panels_of(keys) : KeyRange{};
    const Index row = strip * kStripRows, count = strip_rows(strip);
    if (panels.size() > 0) {
      const Index D = shape_.D, E = shape_.E;
      product<1, Store::assign>(weights_ + row * kPairStride + panels.begin, kPairStride, count, panels.size(),
                                Factor<T>{query_panels_ + strip * D * kPanel, kPanel},
                                Factor<T>{key_panels_ + (first + panels.begin) * D, kPanel, D * kPanel}, D,
                                call_.fused.scale);
      product<1, Store::assign>(dscores_ + row * kPairStride + panels.begin, kPairStride, count, panels.size(),
                                Factor<T>{dout_panels_ + strip * E * kPanel, kPanel},
                                Factor<T>{value_panels_ + (first + panels.begin) * E, kPanel, E * kPanel}, E);
    }
    for (Index r = row; r < row + count; ++r) {
      T *weights = weights_ + r * kPairStride, *dscores = dscores_ + r * kPairStride;
      for (T* x : {weights, dscores}) {
        std::fill(x, x + panels.begin, T{0});
        std::fill(x + panels.end, x + kTileKeys, T{0});
      }
      if (panels.size() == 0) continue;
      T* slopes = softcap() ? cap_slopes_ + r * kPairStride : nullptr;
      finish_scores(call_.fused, weights, slopes, rows_[at(r)], b_, chunk_ + first, panels);
      if (seen_[at(strip)].masked) {
        differentiate_row<true>(h, r, first, panels, slopes);
      } else {
        differentiate_row<false>(h, r, first, panels, slopes);
      }
    }
  }

  // weights: score → P; dscores: dP → dS, which dbias takes, → scale·dS'.
  template <bool kMasked>
  void differentiate_row(Index h, Index r, Index first, KeyRange panels, const T* slopes) {
    const hn::ScalableTag<T> d;
    const auto visible = [&]([[maybe_unused]] Index n, auto x) HWY_ATTR {
      if constexpr (kMasked) return hn::IfThenElseZero(visible_lanes(d, bits_[at(r)], first + n), x);
      return x;
    };
    const RowStatistics& row = statistics_[at(r)];
    const auto max = hn::Set(d, row.max), inverse = hn::Set(d, row.inverse_sum), mean = hn::Set(d, row.mean);
    T *weights = weights_ + r * kPairStride, *dscores = dscores_ + r * kPairStride;
    for (Index n = panels.begin; n < panels.end; n += kLanes<T>) {
      const auto weight = visible(n, hn::Mul(ExpFlushed(d, hn::Sub(hn::Load(d, weights + n), max)), inverse));
      hn::Store(weight, d, weights + n);
      hn::Store(visible(n, hn::Mul(weight, hn::Sub(hn::Load(d, dscores + n), mean))), d, dscores + n);
    }
    if (!call_.dbias.empty()) add_to_bias(h, r, first, panels);
    const auto scale = hn::Set(d, call_.fused.scale);
    for (Index n = panels.begin; n < panels.end; n += kLanes<T>) {
      auto dscore = hn::Load(d, dscores + n);
      if (slopes != nullptr) dscore = visible(n, hn::Mul(dscore, hn::Load(d, slopes + n)));
      hn::Store(hn::Mul(dscore, scale), d, dscores + n);
    }
  }

  bool sees(Index r, Index n) const {
    const VisibleStrip& strip = seen_[at(r / kStripRows)];
    return strip.masked ? is_visible(bits_[at(r)], n) : strip.keys.contains(n);
  }
  void add_to_bias(Index h, Index r, Index first, KeyRange keys) {
    const View<T, 1> dbias = call_.dbias[b_][h][first_query_ + r];
    for (Index n = keys.begin; n < keys.end; ++n) {
      if (sees(r, first + n)) dbias[chunk_ + first + n] += dscores_[r * kPairStride + n];
    }
  }

  // dv += Pᵀ·dout, dk += dSᵀ·q, for each run of panels that the same strips [begin, end) see.
  void add_to_keys(Index first, Index begin, Index end, const std::array<KeyRange, kTileStrips>& keys) {
    const auto strips_on = [&](Index panel) {
      KeyRange strips;
      for (Index strip = begin; strip < end; ++strip) {
        if (keys[at(strip)].size() > 0 && panels_of(keys[at(strip)]).contains(panel)) {
          strips = hull(strips, {strip, strip + 1});
        }
      }
      return strips;
    };
    for (Index panel = 0; panel < kTileKeys;) {
      const KeyRange on = strips_on(panel);
      const Index from = panel;
      do {
        panel += kPanel;
      } while (panel < kTileKeys && strips_on(panel).begin == on.begin && strips_on(panel).end == on.end);
      if (on.size() == 0) continue;
      const Index row = on.begin * kStripRows, depth = std::min(on.end * kStripRows, queries_) - row;
      const Index count = std::min(panel, shape_.Tk - chunk_ - first) - from;
      product<1, Store::add>(dv_ + (first + from) * e_stride_, e_stride_, count, vectors_of<T>(shape_.E),
                             Factor<T>{weights_ + row * kPairStride + from, kPairStride},
                             Factor<T>{dout_rows_.data + row * dout_rows_.stride, dout_rows_.stride}, depth);
      product<1, Store::add>(dk_ + (first + from) * d_stride_, d_stride_, count, vectors_of<T>(shape_.D),
                             Factor<T>{dscores_ + row * kPairStride + from, kPairStride},
                             Factor<T>{query_rows_.data + row * query_rows_.stride, query_rows_.stride}, depth);
    }
  }

  // The same sums over the visible pairs alone: where a hidden pair would multiply 0 by what is not finite.
  void add_visible_pairs(Index first) {
    const Index d_columns = vectors_of<T>(shape_.D), e_columns = vectors_of<T>(shape_.E);
    for (Index r = 0; r < queries_; ++r) {
      const T *q = query_rows_.data + r * query_rows_.stride, *dout = dout_rows_.data + r * dout_rows_.stride;
      for (Index n = 0; n < kTileKeys; ++n) {
        if (!sees(r, first + n)) continue;
        const T weight = weights_[r * kPairStride + n], dscore = dscores_[r * kPairStride + n];
        add_scaled(dv_ + (first + n) * e_stride_, weight, dout, e_columns);
        add_scaled(dk_ + (first + n) * d_stride_, dscore, q, d_columns);
        add_scaled(dq_ + r * dq_stride_, dscore, key_rows_.data + (first + n) * key_rows_.stride, d_columns);
      }
    }
  }
  static void add_scaled(T* to, T factor, const T* from, Index columns) {
    const hn::ScalableTag<T> d;
    for (Index c = 0; c < columns; c += kLanes<T>) {
      hn::StoreU(Fma(hn::Set(d, factor), hn::LoadU(d, from + c), hn::LoadU(d, to + c)), d, to + c);
    }
  }

  // to[first + r] = from[r] + 0: a sum of −0 comes out as 0, whichever zeros were added to it.
  static void write_rows(View<T, 2> to, Index first, Index count, const T* from, Index stride) {
    const hn::ScalableTag<T> d;
    for (Index r = 0; r < count; ++r) {
      const T* row = from + r * stride;
      write_row<T>(to[first + r], [&](Index c) HWY_ATTR { return hn::Add(hn::LoadU(d, row + c), hn::Zero(d)); });
    }
  }

  static constexpr std::size_t at(Index n) { return static_cast<std::size_t>(n); }

  struct RowStatistics {
    T max, inverse_sum, mean;
  };

  const BackwardCall<T>& call_;
  const AttentionShape& shape_;
  const Index d_stride_, e_stride_, chunk_keys_;
  const bool dq_in_place_;
  ReadyRows<T> key_rows_, query_rows_, dout_rows_;
  Scratch scratch_;
  T *key_panels_, *value_panels_;        // [16][D][16], [16][E][16]
  T *dk_, *dv_;                          // [256][d_stride], [256][e_stride]
  T *query_panels_, *dout_panels_;       // [4][D][16], [4][E][16]
  T* out_panel_;                         // [E][16]
  T *weights_, *dscores_;                // [48][kPairStride]
  T* cap_slopes_ = nullptr;              // [48][kPairStride]
  T* dq_tile_ = nullptr;                 // [48][d_stride]
  Index b_ = 0, g_ = 0, chunk_ = 0;      // under way: the first key of the chunk,
  Index first_query_ = 0, queries_ = 0;  // the tile,
  T* dq_ = nullptr;                      // [queries][dq_stride] of the tile
  Index dq_stride_ = 0;
  bool keys_finite_ = false, finite_ = false;  // all keys of the chunk; and all queries and dout of the tile
  T means_[kTileQueries];
  std::array<QueryRow, kTileQueries> rows_;
  std::array<RowStatistics, kTileQueries> statistics_;
  std::array<ChunkBits, kTileQueries> bits_;
  std::array<VisibleStrip, kTileStrips> seen_;
};

}  // namespace heedful::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEEDFUL_ATTENTION_FUSED_BACKWARD_WORKER_INL_H_
