#include "heedful/decoder/block.h"

#include "heedful/decoder/feed_forward.h"
#include "heedful/decoder/last_rows.h"
#include "heedful/decoder/norm.h"

namespace heedful {
namespace {

// sum = a + b; any of them may be the same memory.
template <class T>
void add(View<T, 2> sum, View<const T, 2> a, View<const T, 2> b) {
  for (Index i = 0; i < sum.size(); ++i) sum.data()[i] = a.data()[i] + b.data()[i];
}

// a.middle [R, C] = the last R rows of x [N, C] + attention(branch [N, C])
template <class T>
void attend_and_add(const Context& context, BlockActivations<T>& a, View<const T, 2> x, View<const T, 2> branch,
                    const BlockWeights<const T>& weights, const BlockRows<T>& rows) {
  View<const T, 2> residual = x;
  if (x.extent(0) != a.middle.extent(0)) {
    take_last<T>(a.output, x, rows.batch);  // where the block's result will stand
    residual = a.output;
  }
  self_attention_forward<T>(context, a.middle.view(), a, branch, weights, rows, residual);
}

template <class T>
void pre_norm_forward(const Context& context, BlockActivations<T>& a, View<const T, 2> x,
                      const BlockWeights<const T>& weights, const BlockRows<T>& rows) {
  norm_forward<T>(context, a.attention_norm, x, weights.attention_norm, rows.config);
  attend_and_add<T>(context, a, x, a.attention_norm.output, weights, rows);
  norm_forward<T>(context, a.feed_forward_norm, a.middle, weights.feed_forward_norm, rows.config);
  feed_forward_forward<T>(context, a.output.view(), a, a.feed_forward_norm.output, weights, rows.config, a.middle);
}

template <class T>
void pre_norm_backward(const Context& context, const BackwardRoom<T>& room, const BackwardRoom<T>& all,
                       const BlockWeights<T>& gradients, const BlockSaved<T>& saved,
                       const BlockWeights<const T>& weights) {
  const auto& a = saved.activations;
  feed_forward_backward<T>(context, room, gradients, room.dx, {a.feed_forward_norm.output, a, saved.rows.config},
                           weights);
  norm_backward<T>(context, room.dbranch, gradients.feed_forward_norm, room.dnorm, a.feed_forward_norm,
                   weights.feed_forward_norm);
  add<T>(room.dx, room.dx, room.dbranch);
  self_attention_backward<T>(context, all.dnorm, room, gradients, room.dx, {a.attention_norm.output, a, saved.rows},
                             weights);
  norm_backward<T>(context, all.dbranch, gradients.attention_norm, all.dnorm, a.attention_norm,
                   weights.attention_norm);
  spread_last(all.dx, room.dx, saved.rows.batch);
  add<T>(all.dx, all.dx, all.dbranch);
}

template <class T>
void post_norm_forward(const Context& context, BlockActivations<T>& a, View<const T, 2> x,
                       const BlockWeights<const T>& weights, const BlockRows<T>& rows) {
  attend_and_add<T>(context, a, x, x, weights, rows);
  norm_forward<T>(context, a.attention_norm, a.middle, weights.attention_norm, rows.config);
  feed_forward_forward<T>(context, a.output.view(), a, a.attention_norm.output, weights, rows.config,
                          a.attention_norm.output);
  norm_forward<T>(context, a.feed_forward_norm, a.output, weights.feed_forward_norm, rows.config);
}

template <class T>
void post_norm_backward(const Context& context, const BackwardRoom<T>& room, const BackwardRoom<T>& all,
                        const BlockWeights<T>& gradients, const BlockSaved<T>& saved,
                        const BlockWeights<const T>& weights) {
  const auto& a = saved.activations;
  norm_backward<T>(context, room.dbranch, gradients.feed_forward_norm, room.dx, a.feed_forward_norm,
                   weights.feed_forward_norm);
  feed_forward_backward<T>(context, room, gradients, room.dbranch, {a.attention_norm.output, a, saved.rows.config},
                           weights);
  add<T>(room.dx, room.dbranch, room.dnorm);
  norm_backward<T>(context, room.dbranch, gradients.attention_norm, room.dx, a.attention_norm,
                   weights.attention_norm);
  self_attention_backward<T>(context, all.dnorm, room, gradients, room.dbranch, saved, weights);
  spread_last(all.dbranch, room.dbranch, saved.rows.batch);
  add<T>(all.dx, all.dbranch, all.dnorm);
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
void block_backward(const Context& context, const Activations<T>& activations, const BlockWeights<T>& gradients,
                    const BlockSaved<T>& saved, const BlockWeights<const T>& weights) {
  const BackwardRoom<T> room = activations.room(saved.activations.q.extent(0));
  if (saved.rows.config.norm_placement == NormPlacement::pre) {
    pre_norm_backward(context, room, activations.memory, gradients, saved, weights);
  } else {
    post_norm_backward(context, room, activations.memory, gradients, saved, weights);
  }
}

#define HEEDFUL_INSTANTIATE(T)                                                                   \
  template void block_forward<T>(const Context&, BlockActivations<T>&, View<const T, 2>,         \
                                 const BlockWeights<const T>&, const BlockRows<T>&);             \
  template void block_backward<T>(const Context&, const Activations<T>&, const BlockWeights<T>&, \
                                  const BlockSaved<T>&, const BlockWeights<const T>&);
HEEDFUL_INSTANTIATE(float)
HEEDFUL_INSTANTIATE(double)
#undef HEEDFUL_INSTANTIATE

}  // namespace heedful
