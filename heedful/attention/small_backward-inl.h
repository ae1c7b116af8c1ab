// The backward pass of a small head (small_call.h): the worker of fused_backward_worker-inl.h with one tile of queries
// and one panel of keys. With the saved max and sum of each row, and mean = dout·out,
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
    pack_small_panel(key_panel_, k);
    pack_small_panel(value_panel_, v);
    keys_finite_ = pack_small_rows(keys_, k);
    visit<Store::assign>(b, g * group);
    for (Index h = g * group + 1; h < (g + 1) * group; ++h) visit<Store::add>(b, h);
    write_sums(HeadRows(call_.gradients.dk, b, g), dk_);
    write_sums(HeadRows(call_.gradients.dv, b, g), dv_);
  }

 private:
  // kStore: whether dk and dv begin with this query head.
  template <Store kStore>
  void visit(Index b, Index h) {
    const Index Tq = shape_.Tq, Tk = shape_.Tk;
    const bool queries_finite = pack_small_rows(queries_, HeadRows(call_.fused.inputs.q, b, h));
    const bool dout_finite = pack_small_rows(dout_, HeadRows(call_.dout, b, h));
    product<kSmallStride, Store::assign>(weights_, kPanel, Tq, kPanel, Factor<T>{queries_, 1},
                                         Factor<T>{key_panel_, kPanel}, shape_.D, call_.fused.scale);
    product<kSmallStride, Store::assign>(dscores_, kPanel, Tq, kPanel, Factor<T>{dout_, 1},
                                         Factor<T>{value_panel_, kPanel}, shape_.E);
    differentiate(b, h);
    if (keys_finite_ && queries_finite && dout_finite) {
      product<1, kStore>(dv_, kSmallStride, Tk, e_columns_, Factor<T>{weights_, kPanel},
                         Factor<T>{dout_, kSmallStride}, Tq);
      product<1, kStore>(dk_, kSmallStride, Tk, d_columns_, Factor<T>{dscores_, kPanel},
                         Factor<T>{queries_, kSmallStride}, Tq);
      product<kPanel, Store::assign>(dq_, kSmallStride, Tq, d_columns_, Factor<T>{dscores_, 1},
                                     Factor<T>{keys_, kSmallStride}, Tk);
    } else {
      if (kStore == Store::assign) clear(dk_, Tk, d_columns_), clear(dv_, Tk, e_columns_);
      clear(dq_, Tq, d_columns_);
      add_visible_pairs();
    }
    write_sums(HeadRows(call_.gradients.dq, b, h), dq_);
  }

  // weights: score → P; dscores: dP → scale·dS; both 0 where hidden.
  void differentiate(Index b, Index h) {
    const hn::ScalableTag<T> d;
    const HeadValues max(call_.saved.row_max, b, h), sum(call_.saved.row_sum, b, h);
    const HeadRows out(call_.saved.out, b, h);
    const auto scale = hn::Set(d, call_.fused.scale);
    HWY_ALIGN T inverses[kPanel];
    const T* sums = sum.data;
    if (sum.stride != 1) {
      for (Index i = 0; i < shape_.Tq; ++i) inverses[i] = sum[i];
      sums = inverses;
    }
    for (Index i = 0; i < shape_.Tq; i += kLanes<T>) {
      const Index count = std::min(kLanes<T>, shape_.Tq - i);
      const auto divisors = LoadFirst(d, sums + i, static_cast<size_t>(count));
      hn::Store(hn::Div(hn::Set(d, T{1}), divisors), d, inverses + i);
    }
    for (Index i = 0; i < shape_.Tq; ++i) {
      const auto row_max = hn::Set(d, max[i]), inverse = hn::Set(d, inverses[i]);
      const auto mean = hn::Set(d, dot(dout_ + i * kSmallStride, out, i));
      for (Index n = 0; n < kPanel; n += kLanes<T>) {
        const auto visible = visible_lanes(d, visible_.bits()[i], n);
        T *p = weights_ + i * kPanel + n, *ds = dscores_ + i * kPanel + n;
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

  static void clear(T* rows, Index count, Index columns) {
    for (Index r = 0; r < count; ++r) std::fill_n(rows + r * kSmallStride, columns, T{0});
  }
  // The sums over the visible pairs alone: where a hidden pair would multiply 0 by what is not finite.
  void add_visible_pairs() {
    for (Index i = 0; i < shape_.Tq; ++i) {
      for (Index j = 0; j < shape_.Tk; ++j) {
        if (!is_visible(visible_.bits()[i], j)) continue;
        const T weight = weights_[i * kPanel + j], dscore = dscores_[i * kPanel + j];
        add_scaled(dv_ + j * kSmallStride, weight, dout_ + i * kSmallStride, e_columns_);
        add_scaled(dk_ + j * kSmallStride, dscore, queries_ + i * kSmallStride, d_columns_);
        add_scaled(dq_ + i * kSmallStride, dscore, keys_ + j * kSmallStride, d_columns_);
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

  const BackwardCall<T>& call_;
  const AttentionShape& shape_;
  SmallMask<T> visible_;
  const Index d_columns_, e_columns_;
  bool keys_finite_ = false;
  HWY_ALIGN T key_panel_[kSmallWidth * kPanel];    // [D][16]
  HWY_ALIGN T value_panel_[kSmallWidth * kPanel];  // [E][16]
  HWY_ALIGN T keys_[kPanel * kSmallStride];        // [Tk][kSmallStride], and so
  HWY_ALIGN T dk_[kPanel * kSmallStride];          // [Tk]
  HWY_ALIGN T dv_[kPanel * kSmallStride];          // [Tk]
  HWY_ALIGN T queries_[kPanel * kSmallStride];     // [Tq]
  HWY_ALIGN T dout_[kPanel * kSmallStride];        // [Tq]
  HWY_ALIGN T dq_[kPanel * kSmallStride];          // [Tq]
  HWY_ALIGN T weights_[kPanel * kPanel];           // [Tq][16]
  HWY_ALIGN T dscores_[kPanel * kPanel];           // [Tq][16]
};

}  // namespace heedful::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEEDFUL_ATTENTION_SMALL_BACKWARD_INL_H_
