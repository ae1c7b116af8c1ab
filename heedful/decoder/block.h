// One Transformer block, forward and backward.
//
//     pre-norm    m = x + attention(norm(x))        y = m + feed_forward(norm(m))
//     post-norm   m = norm(x + attention(x))        y = norm(m + feed_forward(m))
//
// Post-norm is the original paper's (arXiv:1706.03762, §3.1); pre-norm keeps the residual path free of normalizations
// (Xiong et al., arXiv:2002.04745).
#ifndef HEEDFUL_DECODER_BLOCK_H_
#define HEEDFUL_DECODER_BLOCK_H_

#include "heedful/decoder/self_attention.h"

namespace heedful {

// Reads x [N, C] and leaves the block's result [R, C] where block_output() finds it.
template <class T>
void block_forward(const Context& context, BlockActivations<T>& activations, View<const T, 2> x,
                   const BlockWeights<const T>& weights, const BlockRows<T>& rows);

template <class T>
View<const T, 2> block_output(const BlockActivations<T>& activations, const DecoderConfig& config) {
  return config.norm_placement == NormPlacement::pre ? activations.output.view()
                                                     : activations.feed_forward_norm.output.view();
}

// The gradient of the block's result stands in dx's first R rows on entry, that of x [N, C] in dx on return, where dx
// is that of activations.memory; the weights' gradients are added to.
template <class T>
void block_backward(const Context& context, const Activations<T>& activations, const BlockWeights<T>& gradients,
                    const BlockSaved<T>& saved, const BlockWeights<const T>& weights);

}  // namespace heedful

#endif  // HEEDFUL_DECODER_BLOCK_H_
