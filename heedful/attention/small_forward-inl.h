// The forward pass of a small head (small_call.h): the block of fused_forward_block-inl.h with one strip of rows, one
// panel of keys and nothing to join,
//     s = scale·q·kᵀ,  p = exp(s − max) where visible, 0 where hidden,  out = p·v / Σ p
#if defined(HEEDFUL_ATTENTION_SMALL_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEEDFUL_ATTENTION_SMALL_FORWARD_INL_H_
#undef HEEDFUL_ATTENTION_SMALL_FORWARD_INL_H_
#else
#define HEEDFUL_ATTENTION_SMALL_FORWARD_INL_H_
#endif

#include <array>
#include <cmath>
#include <limits>

#include "heedful/attention/small_call.h"
#include "heedful/attention/small_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heedful::HWY_NAMESPACE {

template <class T>
class SmallForward {
 public:
  SmallForward(const FusedCall<T>& call, const AttentionOutputs<T>& outputs)
      : call_(call), outputs_(outputs), visible_(call), columns_(round_up(call.shape.E, kLanes<T>)) {}

  // The query heads on key-value head g of sequence b.
  void run(Index b, Index g) {
    const Index group = call_.shape.H / call_.shape.G;
    visible_.look(b);
    pack_small_panel(keys_, HeadRows(call_.inputs.k, b, g));
    pack_small_rows(values_, HeadRows(call_.inputs.v, b, g));
    for (Index h = g * group; h < (g + 1) * group; ++h) attend(b, h);
  }

 private:
  void attend(Index b, Index h) {
    const auto& [B, Tq, Tk, H, G, D, E] = call_.shape;
    pack_small_rows(queries_, HeadRows(call_.inputs.q, b, h));
    product<kSmallStride, Store::assign>(scores_, kStripStride, Tq, kPanel, Factor<T>{queries_, 1},
                                         Factor<T>{keys_, kPanel}, D, call_.scale);
    HWY_ALIGN T max[kPanel], sum[kPanel];
    softmax_strip<true>(max, sum, scores_, Tq, {0, kPanel}, visible_.bits());
    product<kStripStride, Store::assign>(out_, kSmallStride, Tq, columns_, Factor<T>{scores_, 1},
                                         Factor<T>{values_, kSmallStride}, Tk);
    for (Index i = 0; i < Tq; ++i) {
      T* out = out_ + i * kSmallStride;
      if (all_finite(out, columns_)) continue;
      sum_visible_values(out, scores_ + i * kStripStride, values_, kSmallStride, columns_, {0, Tk},
                         visible_.bits()[i]);
    }
    finish(b, h, max, sum);
  }

  // As joining the softmax of no key, and then finish() of the general path.
  void finish(Index b, Index h, const T* max, const T* sum) {
    const hn::ScalableTag<T> d;
    constexpr T kNone = -std::numeric_limits<T>::infinity();
    const Index Tq = call_.shape.Tq;
    const auto largest = [&](T max_of_row) { return std::max(kNone, max_of_row) + 0; };  // not −0
    HWY_ALIGN T divisors[kPanel];
    for (Index i = 0; i < Tq; ++i) divisors[i] = sum[i] == 0 && !visible_.sees_any(i) ? T{1} : sum[i];
    // + 0: a sum of −0 comes out as 0, whichever zeros were added to it.
    write_small_rows(HeadRows(outputs_.out, b, h), [&](Index i, Index c) HWY_ATTR {
      const auto out = hn::Load(d, out_ + i * kSmallStride + c);
      return hn::Add(hn::Div(out, hn::Set(d, divisors[i])), hn::Zero(d));
    });
    const HeadValues row_max(outputs_.row_max, b, h), row_sum(outputs_.row_sum, b, h);
    const HeadValues log_sum_exp(outputs_.log_sum_exp, b, h);
    if (row_max.data != nullptr) {
      for (Index i = 0; i < Tq; ++i) row_max[i] = largest(max[i]), row_sum[i] = sum[i];
    }
    if (log_sum_exp.data != nullptr) {
      for (Index i = 0; i < Tq; ++i) log_sum_exp[i] = largest(max[i]) + std::log(sum[i]);  // −∞ of an empty row
    }
  }

  const FusedCall<T>& call_;
  const AttentionOutputs<T>& outputs_;
  SmallMask<T> visible_;
  const Index columns_;
  HWY_ALIGN T keys_[kSmallWidth * kPanel];      // [D][16]
  HWY_ALIGN T values_[kPanel * kSmallStride];   // [Tk][kSmallStride], and so
  HWY_ALIGN T queries_[kPanel * kSmallStride];  // [Tq]
  HWY_ALIGN T out_[kPanel * kSmallStride];      // [Tq]
  HWY_ALIGN T scores_[kPanel * kStripStride];   // [Tq][kStripStride]
};

}  // namespace heedful::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEEDFUL_ATTENTION_SMALL_FORWARD_INL_H_
