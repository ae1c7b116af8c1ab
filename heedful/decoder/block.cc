#include "heedful/decoder/block.h"

#include "heedful/decoder/feed_forward.h"
#include "heedful/decoder/norm.h"

namespace heedful {
namespace {

// sum = x + branch; any of them may be the same memory.
template <class T>
void add(Tensor<T, 2>& sum, View<const T, 2> x, const Tensor<T, 2>& branch) {
  const T* a = x.data();
  const T* b = branch.data();
  T* out = sum.data();
  for (Index i = 0; i < sum.size(); ++i) out[i] = a[i] + b[i];
}

template <class T>
void pre_norm_forward(const Context& context, BlockActivations<T>& a, View<const T, 2> x,
                      const BlockWeights<const T>& weights, const BlockRows<T>& rows) {
  norm_forward<T>(context, a.attention_norm, x, weights.attention_norm, rows.config);
  self_attention_forward<T>(context, a.middle.view(), a, a.attention_norm.output, weights, rows);
  add<T>(a.middle, x, a.middle);
  norm_forward<T>(context, a.feed_forward_norm, a.middle, weights.feed_forward_norm, rows.config);
  feed_forward_forward<T>(context, a.output.view(), a, a.feed_forward_norm.output, weights, rows.config);
  add<T>(a.output, a.middle, a.output);
}

template <class T>
void pre_norm_backward(const Context& context, BackwardRoom<T>& room, const BlockWeights<T>& gradients,
                       const BlockSaved<T>& saved, const BlockWeights<const T>& weights) {
  const auto& a = saved.activations;
  feed_forward_backward<T>(context, room, gradients, room.dx, {a.feed_forward_norm.output, a, saved.rows.config},
                           weights);
  norm_backward<T>(context, room.dbranch, gradients.feed_forward_norm, room.dnorm, a.feed_forward_norm,
                   weights.feed_forward_norm);
  add<T>(room.dx, room.dx, room.dbranch);
  self_attention_backward<T>(context, room, gradients, room.dx, {a.attention_norm.output, a, saved.rows}, weights);
  norm_backward<T>(context, room.dbranch, gradients.attention_norm, room.dnorm, a.attention_norm,
                   weights.attention_norm);
  add<T>(room.dx, room.dx, room.dbranch);
}

template <class T>
void post_norm_forward(const Context& context, BlockActivations<T>& a, View<const T, 2> x,
                       const BlockWeights<const T>& weights, const BlockRows<T>& rows) {
  self_attention_forward<T>(context, a.middle.view(), a, x, weights, rows);
  add<T>(a.middle, x, a.middle);
  norm_forward<T>(context, a.attention_norm, a.middle, weights.attention_norm, rows.config);
  feed_forward_forward<T>(context, a.output.view(), a, a.attention_norm.output, weights, rows.config);
  add<T>(a.output, a.attention_norm.output, a.output);
  norm_forward<T>(context, a.feed_forward_norm, a.output, weights.feed_forward_norm, rows.config);
}

template <class T>
void post_norm_backward(const Context& context, BackwardRoom<T>& room, const BlockWeights<T>& gradients,
                        const BlockSaved<T>& saved, const BlockWeights<const T>& weights) {
  const auto& a = saved.activations;
  norm_backward<T>(context, room.dbranch, gradients.feed_forward_norm, room.dx, a.feed_forward_norm,
                   weights.feed_forward_norm);
  feed_forward_backward<T>(context, room, gradients, room.dbranch, {a.attention_norm.output, a, saved.rows.config},
                           weights);
  add<T>(room.dx, room.dbranch, room.dnorm);
  norm_backward<T>(context, room.dbranch, gradients.attention_norm, room.dx, a.attention_norm,
                   weights.attention_norm);
  self_attention_backward<T>(context, room, gradients, room.dbranch, saved, weights);
  add<T>(room.dx, room.dbranch, room.dnorm);
}

}  // namespace

template <class T>
void block_forward(const Context& context, BlockActivations<T>& activations, View<const T, 2> x,
                   const BlockWeights<const T>& weights, const BlockRows<T>& rows) {
  if (rows.config.norm_placement == NormPlacement::pre) {
    pre_norm_forward(context, activations, x, weights, rows);
  } else {
    post_norm_forward(context, activations, x, weights, rows);
  }
}

template <class T>
void block_backward(const Context& context, BackwardRoom<T>& room, const BlockWeights<T>& gradients,
                    const BlockSaved<T>& saved, const BlockWeights<const T>& weights) {
  if (saved.rows.config.norm_placement == NormPlacement::pre) {
    pre_norm_backward(context, room, gradients, saved, weights);
  } else {
    post_norm_backward(context, room, gradients, saved, weights);
  }
}

#define HEEDFUL_INSTANTIATE(T)                                                                                    \
  template void block_forward<T>(const Context&, BlockActivations<T>&, View<const T, 2>,                          \
                                 const BlockWeights<const T>&, const BlockRows<T>&);                              \
  template void block_backward<T>(const Context&, BackwardRoom<T>&, const BlockWeights<T>&, const BlockSaved<T>&, \
                                  const BlockWeights<const T>&);
HEEDFUL_INSTANTIATE(float)
HEEDFUL_INSTANTIATE(double)
#undef HEEDFUL_INSTANTIATE

}  // namespace heedful
