#include "heedful/decoder/block.h"

#include "heedful/decoder/feed_forward.h"
#include "heedful/decoder/last_rows.h"
#include "heedful/decoder/norm.h"

namespace heedful {
namespace {

// sum [R, C] = the last R rows of x [N, C] + branch [R, C]; any of them may be the same memory where R = N.
template <class T>
void add(View<T, 2> sum, View<const T, 2> x, View<const T, 2> branch, Index batch) {
  for (Index r = 0; r < sum.extent(0); ++r) {
    const T* a = &x(row_of_last(r, sum.extent(0), x.extent(0), batch), 0);
    const T* b = &branch(r, 0);
    T* out = &sum(r, 0);
    for (Index c = 0; c < sum.extent(1); ++c) out[c] = a[c] + b[c];
  }
}

template <class T>
void pre_norm_forward(const Context& context, BlockActivations<T>& a, View<const T, 2> x,
                      const BlockWeights<const T>& weights, const BlockRows<T>& rows) {
  norm_forward<T>(context, a.attention_norm, x, weights.attention_norm, rows.config);
  self_attention_forward<T>(context, a.middle.view(), a, a.attention_norm.output, weights, rows);
  add<T>(a.middle, x, a.middle, rows.batch);
  norm_forward<T>(context, a.feed_forward_norm, a.middle, weights.feed_forward_norm, rows.config);
  feed_forward_forward<T>(context, a.output.view(), a, a.feed_forward_norm.output, weights, rows.config);
  add<T>(a.output, a.middle, a.output, rows.batch);
}

template <class T>
void pre_norm_backward(const Context& context, const BackwardRoom<T>& room, const BackwardRoom<T>& all,
                       const BlockWeights<T>& gradients, const BlockSaved<T>& saved,
                       const BlockWeights<const T>& weights) {
  const auto& a = saved.activations;
  const Index batch = saved.rows.batch;
  feed_forward_backward<T>(context, room, gradients, room.dx, {a.feed_forward_norm.output, a, saved.rows.config},
                           weights);
  norm_backward<T>(context, room.dbranch, gradients.feed_forward_norm, room.dnorm, a.feed_forward_norm,
                   weights.feed_forward_norm);
  add<T>(room.dx, room.dx, room.dbranch, batch);
  self_attention_backward<T>(context, all.dnorm, room, gradients, room.dx, {a.attention_norm.output, a, saved.rows},
                             weights);
  norm_backward<T>(context, all.dbranch, gradients.attention_norm, all.dnorm, a.attention_norm,
                   weights.attention_norm);
  spread_last(all.dx, room.dx, batch);
  add<T>(all.dx, all.dx, all.dbranch, batch);
}

template <class T>
void post_norm_forward(const Context& context, BlockActivations<T>& a, View<const T, 2> x,
                       const BlockWeights<const T>& weights, const BlockRows<T>& rows) {
  self_attention_forward<T>(context, a.middle.view(), a, x, weights, rows);
  add<T>(a.middle, x, a.middle, rows.batch);
  norm_forward<T>(context, a.attention_norm, a.middle, weights.attention_norm, rows.config);
  feed_forward_forward<T>(context, a.output.view(), a, a.attention_norm.output, weights, rows.config);
  add<T>(a.output, a.attention_norm.output, a.output, rows.batch);
  norm_forward<T>(context, a.feed_forward_norm, a.output, weights.feed_forward_norm, rows.config);
}

template <class T>
void post_norm_backward(const Context& context, const BackwardRoom<T>& room, const BackwardRoom<T>& all,
                        const BlockWeights<T>& gradients, const BlockSaved<T>& saved,
                        const BlockWeights<const T>& weights) {
  const auto& a = saved.activations;
  const Index batch = saved.rows.batch;
  norm_backward<T>(context, room.dbranch, gradients.feed_forward_norm, room.dx, a.feed_forward_norm,
                   weights.feed_forward_norm);
  feed_forward_backward<T>(context, room, gradients, room.dbranch, {a.attention_norm.output, a, saved.rows.config},
                           weights);
  add<T>(room.dx, room.dbranch, room.dnorm, batch);
  norm_backward<T>(context, room.dbranch, gradients.attention_norm, room.dx, a.attention_norm,
                   weights.attention_norm);
  self_attention_backward<T>(context, all.dnorm, room, gradients, room.dbranch, saved, weights);
  spread_last(all.dbranch, room.dbranch, batch);
  add<T>(all.dx, all.dbranch, all.dnorm, batch);
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
