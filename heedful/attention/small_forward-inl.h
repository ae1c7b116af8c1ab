// The forward pass of a small head (small_call.h): the block of fused_forward_block-inl.h with one chunk of keys, so
// nothing to join,
//     s = scale·q·kᵀ,  p = exp(s − max) where visible, 0 where hidden,  out = p·v / Σ p
#if defined(HEEDFUL_ATTENTION_SMALL_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEEDFUL_ATTENTION_SMALL_FORWARD_INL_H_
#undef HEEDFUL_ATTENTION_SMALL_FORWARD_INL_H_
#else
#define HEEDFUL_ATTENTION_SMALL_FORWARD_INL_H_
#endif

#include <array>
#include <cmath>

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
    pack_small_panels(keys_, HeadRows(call_.inputs.k, b, g));
    pack_small_rows(values_, HeadRows(call_.inputs.v, b, g));
    for (Index h = g * group; h < (g + 1) * group; ++h) {
      for (Index first = 0; first < call_.shape.Tq; first += kPanel) attend(b, h, first);
    }
  }

 private:
  // Queries [first, first + 16) of the head, as far as there are.
  void attend(Index b, Index h, Index first) {
    const Index D = call_.shape.D, count = std::min(kPanel, call_.shape.Tq - first);
    const Index end = visible_.end_of(first, count), panels = round_up(end, kPanel);
    const ChunkBits* bits = visible_.bits() + first;
    pack_small_rows(queries_, HeadRows(call_.inputs.q, b, h).part(first, count));
    product<kSmallStride, Store::assign>(scores_, kStripStride, count, panels, Factor<T>{queries_, 1},
                                         Factor<T>{keys_, kPanel, D * kPanel}, D, call_.scale);
    HWY_ALIGN T max[kPanel], sum[kPanel];
    softmax_strip<true>(max, sum, scores_, count, {0, panels}, bits);
    product<kStripStride, Store::assign>(out_, kSmallStride, count, columns_, Factor<T>{scores_, 1},
                                         Factor<T>{values_, kSmallStride}, end);
    for (Index r = 0; r < count; ++r) {
      T* out = out_ + r * kSmallStride;
      if (all_finite(out, columns_)) continue;
      sum_visible_values(out, scores_ + r * kStripStride, values_, kSmallStride, columns_, {0, end}, bits[r]);
    }
    finish(b, h, first, count, max, sum);
  }

  // As joining the softmax of no key, and then finish() of the general path.
  void finish(Index b, Index h, Index first, Index count, const T* max, const T* sum) {
    const hn::ScalableTag<T> d;
    HWY_ALIGN T divisors[kPanel];
    for (Index r = 0; r < count; ++r) divisors[r] = sum[r] == 0 && !visible_.sees_any(first + r) ? T{1} : sum[r];
    // + 0: a sum of −0 comes out as 0, whichever zeros were added to it.
    write_small_rows(HeadRows(outputs_.out, b, h).part(first, count), [&](Index r, Index c) HWY_ATTR {
      const auto out = hn::Load(d, out_ + r * kSmallStride + c);
      return hn::Add(hn::Div(out, hn::Set(d, divisors[r])), hn::Zero(d));
    });
    const HeadValues row_max(outputs_.row_max, b, h), row_sum(outputs_.row_sum, b, h);
    const HeadValues log_sum_exp(outputs_.log_sum_exp, b, h);
    if (row_max.data != nullptr) {
      // + 0: not −0
      for (Index r = 0; r < count; ++r) row_max[first + r] = max[r] + 0, row_sum[first + r] = sum[r];
    }
    if (log_sum_exp.data != nullptr) {  // −∞ of an empty row
      for (Index r = 0; r < count; ++r) log_sum_exp[first + r] = max[r] + 0 + std::log(sum[r]);
    }
  }

  const FusedCall<T>& call_;
  const AttentionOutputs<T>& outputs_;
  SmallMask<T> visible_;
  const Index columns_;
  HWY_ALIGN T keys_[kSmallLength * kSmallWidth];     // [Tk/16][D][16]
  HWY_ALIGN T values_[kSmallLength * kSmallStride];  // [Tk][kSmallStride]
  HWY_ALIGN T queries_[kPanel * kSmallStride];       // [16][kSmallStride]
  HWY_ALIGN T out_[kPanel * kSmallStride];           // the same
  HWY_ALIGN T scores_[kPanel * kStripStride];        // [16][kStripStride]
};

}  // namespace heedful::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEEDFUL_ATTENTION_SMALL_FORWARD_INL_H_
