// The backward pass of a small head (small_call.h): the worker of fused_backward_worker-inl.h with one chunk of keys.
// With the saved max and sum of each row, and mean = dout·out,
//     p = exp(s − max) / sum,  dS = scale · p ∘ (dout·vᵀ − mean),  dv += pᵀ·dout,  dk += dSᵀ·q,  dq = dS·k
#if defined(HEEDFUL_ATTENTION_SMALL_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEEDFUL_ATTENTION_SMALL_BACKWARD_INL_H_
#undef HEEDFUL_ATTENTION_SMALL_BACKWARD_INL_H_
#else
#define HEEDFUL_ATTENTION_SMALL_BACKWARD_INL_H_
#endif

#include <algorithm>

#include "heedful/attention/fused_backward_call.h"
#include "heedful/attention/small_call.h"
#include "heedful/attention/small_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heedful::HWY_NAMESPACE {

template <class T>
class SmallBackward {
 public:
  explicit SmallBackward(const BackwardCall<T>& call)
      : call_(call),
        shape_(call.fused.shape),
        visible_(call.fused),
        d_columns_(round_up(shape_.D, kLanes<T>)),
        e_columns_(round_up(shape_.E, kLanes<T>)) {}

  // Key-value head g of sequence b, and the query heads on it.
  void run(Index b, Index g) {
    const HeadRows k(call_.fused.inputs.k, b, g), v(call_.fused.inputs.v, b, g);
    const Index group = shape_.H / shape_.G;
    visible_.look(b);
    pack_small_panels(key_panels_, k);
    pack_small_panels(value_panels_, v);
    keys_finite_ = pack_small_rows(keys_, k);
    begun_ = 0;
    for (Index h = g * group; h < (g + 1) * group; ++h) {
      for (Index first = 0; first < shape_.Tq; first += kPanel) visit(b, h, first);
    }
    begin_sums(shape_.Tk);
    write_sums(HeadRows(call_.gradients.dk, b, g), dk_);
    write_sums(HeadRows(call_.gradients.dv, b, g), dv_);
  }

 private:
  // Queries [first, first + 16) of head h, as far as there are.
  void visit(Index b, Index h, Index first) {
    const Index D = shape_.D, E = shape_.E, count = std::min(kPanel, shape_.Tq - first);
    const Index end = visible_.end_of(first, count), panels = round_up(end, kPanel);
    const bool queries_finite = pack_small_rows(queries_, HeadRows(call_.fused.inputs.q, b, h).part(first, count));
    const bool dout_finite = pack_small_rows(dout_, HeadRows(call_.dout, b, h).part(first, count));
    product<kSmallStride, Store::assign>(weights_, kPairs, count, panels, Factor<T>{queries_, 1},
                                         Factor<T>{key_panels_, kPanel, D * kPanel}, D, call_.fused.scale);
    product<kSmallStride, Store::assign>(dscores_, kPairs, count, panels, Factor<T>{dout_, 1},
                                         Factor<T>{value_panels_, kPanel, E * kPanel}, E);
    differentiate(b, h, first, count, panels);
    if (keys_finite_ && queries_finite && dout_finite) {
      const Index begun = std::min(begun_, end);
      add_to_keys<Store::add>(0, begun, count);
      add_to_keys<Store::assign>(begun, end, count);
      begun_ = std::max(begun_, end);
      product<kPairs, Store::assign>(dq_, kSmallStride, count, d_columns_, Factor<T>{dscores_, 1},
                                     Factor<T>{keys_, kSmallStride}, end);
    } else {
      begin_sums(end);
      add_visible_pairs(first, count, end);
    }
    write_sums(HeadRows(call_.gradients.dq, b, h).part(first, count), dq_);
  }

  // dv += Pᵀ·dout, dk += dSᵀ·q for keys [from, to), whose sums go on, or begin here.
  template <Store kStore>
  HWY_INLINE void add_to_keys(Index from, Index to, Index queries) {
    if (from >= to) return;
    product<1, kStore>(dv_ + from * kSmallStride, kSmallStride, to - from, e_columns_,
                       Factor<T>{weights_ + from, kPairs}, Factor<T>{dout_, kSmallStride}, queries);
    product<1, kStore>(dk_ + from * kSmallStride, kSmallStride, to - from, d_columns_,
                       Factor<T>{dscores_ + from, kPairs}, Factor<T>{queries_, kSmallStride}, queries);
  }
  // The sums of keys [0, end) are begun, if they were not.
  void begin_sums(Index end) {
    for (; begun_ < end; ++begun_) {
      std::fill_n(dk_ + begun_ * kSmallStride, d_columns_, T{0});
      std::fill_n(dv_ + begun_ * kSmallStride, e_columns_, T{0});
    }
  }

  // weights: score → P; dscores: dP → scale·dS; both 0 where hidden, in whole panels.
  void differentiate(Index b, Index h, Index first, Index count, Index panels) {
    const hn::ScalableTag<T> d;
    const HeadValues max(call_.saved.row_max, b, h), sum(call_.saved.row_sum, b, h);
    const HeadRows out(call_.saved.out, b, h);
    const auto scale = hn::Set(d, call_.fused.scale);
    HWY_ALIGN T inverses[kPanel];
    const T* sums = sum.data + first;
    if (sum.stride != 1) {
      for (Index r = 0; r < count; ++r) inverses[r] = sum[first + r];
      sums = inverses;
    }
    for (Index r = 0; r < count; r += kLanes<T>) {
      const auto divisors = LoadFirst(d, sums + r, static_cast<size_t>(std::min(kLanes<T>, count - r)));
      hn::Store(hn::Div(hn::Set(d, T{1}), divisors), d, inverses + r);
    }
    for (Index r = 0; r < count; ++r) {
      const auto row_max = hn::Set(d, max[first + r]), inverse = hn::Set(d, inverses[r]);
      const auto mean = hn::Set(d, dot(dout_ + r * kSmallStride, out, first + r));
      for (Index n = 0; n < panels; n += kLanes<T>) {
        const auto visible = visible_lanes(d, visible_.bits()[first + r], n);
        T *p = weights_ + r * kPairs + n, *ds = dscores_ + r * kPairs + n;
        const auto weight =
            hn::IfThenElseZero(visible, hn::Mul(ExpFlushed(d, hn::Sub(hn::Load(d, p), row_max)), inverse));
        const auto dscore = hn::IfThenElseZero(visible, hn::Mul(weight, hn::Sub(hn::Load(d, ds), mean)));
        hn::Store(weight, d, p);
        hn::Store(hn::Mul(dscore, scale), d, ds);
      }
    }
  }
  static T dot(const T* a, const HeadRows<const T>& rows, Index r) {
    const hn::CappedTag<T, 1> d;
    const T* b = rows.data + r * rows.stride;
    auto sum = hn::Zero(d);
    for (Index e = 0; e < rows.columns; ++e) sum = Fma(hn::Set(d, a[e]), hn::Set(d, b[e * rows.step]), sum);
    return hn::GetLane(sum);
  }

  // The sums over the visible pairs alone: where a hidden pair would multiply 0 by what is not finite.
  void add_visible_pairs(Index first, Index count, Index end) {
    for (Index r = 0; r < count; ++r) {
      std::fill_n(dq_ + r * kSmallStride, d_columns_, T{0});
      for (Index j = 0; j < end; ++j) {
        if (!is_visible(visible_.bits()[first + r], j)) continue;
        const T weight = weights_[r * kPairs + j], dscore = dscores_[r * kPairs + j];
        add_scaled(dv_ + j * kSmallStride, weight, dout_ + r * kSmallStride, e_columns_);
        add_scaled(dk_ + j * kSmallStride, dscore, queries_ + r * kSmallStride, d_columns_);
        add_scaled(dq_ + r * kSmallStride, dscore, keys_ + j * kSmallStride, d_columns_);
      }
    }
  }
  static void add_scaled(T* to, T factor, const T* from, Index columns) {
    const hn::ScalableTag<T> d;
    for (Index c = 0; c < columns; c += kLanes<T>) {
      hn::Store(Fma(hn::Set(d, factor), hn::Load(d, from + c), hn::Load(d, to + c)), d, to + c);
    }
  }

  // + 0: a sum of −0 comes out as 0, whichever zeros were added to it.
  static void write_sums(const HeadRows<T>& to, const T* from) {
    const hn::ScalableTag<T> d;
    write_small_rows(to, [&](Index r, Index c)
                             HWY_ATTR { return hn::Add(hn::Load(d, from + r * kSmallStride + c), hn::Zero(d)); });
  }

  static constexpr Index kPairs = kSmallLength + kPanel;  // from the pairs of one query to those of the next

  const BackwardCall<T>& call_;
  const AttentionShape& shape_;
  SmallMask<T> visible_;
  const Index d_columns_, e_columns_;
  bool keys_finite_ = false;
  Index begun_ = 0;                                       // dk and dv of keys [0, begun) hold sums
  HWY_ALIGN T key_panels_[kSmallLength * kSmallWidth];    // [Tk/16][D][16]
  HWY_ALIGN T value_panels_[kSmallLength * kSmallWidth];  // [Tk/16][E][16]
  HWY_ALIGN T keys_[kSmallLength * kSmallStride];         // [Tk][kSmallStride], and so
  HWY_ALIGN T dk_[kSmallLength * kSmallStride];
  HWY_ALIGN T dv_[kSmallLength * kSmallStride];
  HWY_ALIGN T queries_[kPanel * kSmallStride];  // [16][kSmallStride], and so
  HWY_ALIGN T dout_[kPanel * kSmallStride];
  HWY_ALIGN T dq_[kPanel * kSmallStride];
  HWY_ALIGN T weights_[kPanel * kPairs];  // [16][kPairs]
  HWY_ALIGN T dscores_[kPanel * kPairs];  // the same
};

}  // namespace heedful::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEEDFUL_ATTENTION_SMALL_BACKWARD_INL_H_
