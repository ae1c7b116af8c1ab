// The feed-forward network of a block, applied to each row alone.
//
//     plain   hidden = activation(x·up)              y = hidden·down
//     gated   hidden = silu(x·gate) ∘ (x·up)         y = hidden·down        (Shazeer, arXiv:2002.05202)
#ifndef HEEDFUL_DECODER_FEED_FORWARD_H_
#define HEEDFUL_DECODER_FEED_FORWARD_H_

#include "heedful/core/context.h"
#include "heedful/decoder/activations.h"
#include "heedful/decoder/config.h"
#include "heedful/decoder/parameters.h"

namespace heedful {

// y [R, C] of x [R, C], plus a residual [R, C] if one is given; gate, up and hidden are kept in `activations`.
template <class T>
void feed_forward_forward(const Context& context, View<T, 2> y, BlockActivations<T>& activations, View<const T, 2> x,
                          const BlockWeights<const T>& weights, const DecoderConfig& config,
                          View<const T, 2> residual = {});

template <class T>
struct FeedForwardSaved {
  View<const T, 2> x;
  const BlockActivations<T>& activations;
  const DecoderConfig& config;
};

// room.dnorm [R, C] = dx for dy [R, C]; the weights' gradients are added to.
template <class T>
void feed_forward_backward(const Context& context, const BackwardRoom<T>& room, const BlockWeights<T>& gradients,
                           View<const T, 2> dy, const FeedForwardSaved<T>& saved,
                           const BlockWeights<const T>& weights);

}  // namespace heedful

#endif  // HEEDFUL_DECODER_FEED_FORWARD_H_
