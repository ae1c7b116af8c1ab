// Small heads: at most 32 queries on at most 32 keys in rows, widths up to 64, a mask of ranges alone, and no softcap,
// bias or ALiBi. The set-up of fused attention (chunks, strips, joining of softmaxes) costs more there than the sums,
// so they have a path of their own. It takes the same sums in the same order, by the same products: no bit differs.
#ifndef HEEDFUL_ATTENTION_SMALL_CALL_H_
#define HEEDFUL_ATTENTION_SMALL_CALL_H_

#include "heedful/attention/fused_call.h"

namespace heedful {

inline constexpr Index kSmallLength = 32, kSmallWidth = 64;

// Rows of a head lie this far apart: a constant, as the products want it, and not one that puts all of them into the
// same sets of the first cache.
inline constexpr Index kSmallStride = kSmallWidth + kPanel;

template <class T>
bool is_small(const FusedCall<T>& call) {
  const auto& [B, Tq, Tk, H, G, D, E] = call.shape;
  const auto fits = [](Index count, Index most) { return 1 <= count && count <= most; };
  return fits(Tq, kSmallLength) && fits(Tk, kSmallLength) && fits(D, kSmallWidth) && fits(E, kSmallWidth) &&
         !call.inputs.k.empty() && !call.mask.has_holes() && call.options.softcap == 0 &&
         call.options.alibi_slopes.empty();
}

// Calls work(range of heads) for all key-value heads, at one time as many as are worth handing to a thread.
template <class T, class Work>
void for_small_heads(const Context& context, const FusedCall<T>& call, const Work& work) {
  constexpr Index kMultiplyAddsAtOnce = Index{1} << 15;  // some microseconds
  const auto& [B, Tq, Tk, H, G, D, E] = call.shape;
  const Index heads = B * G, at_once = std::max(Index{1}, kMultiplyAddsAtOnce / (Tq * Tk * (D + E) * (H / G)));
  in_order(context, (heads + at_once - 1) / at_once,
           [&](Index n) { work(KeyRange{n * at_once, std::min(heads, (n + 1) * at_once)}); });
}

// attention_forward and attention_backward; `general` keeps even small heads off their path, for comparison.
enum class HeadPath { fitting, general };
template <HeadPath kPath, class T>
void attention_forward_on(const Context& context, const AttentionOutputs<T>& outputs,
                          const AttentionInputs<T>& inputs, const AttentionOptions<T>& options);
template <HeadPath kPath, class T>
void attention_backward_on(const Context& context, const AttentionGradients<T>& gradients, In<T, 4> dout,
                           const AttentionInputs<T>& inputs, const AttentionSaved<T>& saved,
                           const AttentionOptions<T>& options);

}  // namespace heedful

#endif  // HEEDFUL_ATTENTION_SMALL_CALL_H_
