// The training loss of a decoder on one batch, and its gradient: weighted cross-entropy of the next token,
//
//     loss = Σ w(b,t) · −log softmax(logits(b,t))[target(b,t)] / Σ w(b,t)
#ifndef HEEDFUL_DECODER_LOSS_H_
#define HEEDFUL_DECODER_LOSS_H_

#include "heedful/decoder/decoder.h"

namespace heedful {

// Predict targets(b, t) from tokens(b, 0 … t), counted loss_weights(b, t) times.
template <class T>
struct Batch {
  Tensor<Index, 2> tokens;    // [B, T]
  Tensor<Index, 2> targets;   // [B, T]
  Tensor<T, 2> loss_weights;  // [B, T]
};

template <class T>
double decoder_loss(const Context& context, Activations<T>& activations, const Decoder<T>& decoder,
                    const Batch<T>& batch);

// The loss times `factor`, whose gradient is added to `gradients` [parameter_count]. What stands before the first
// position that counts costs no more than its keys and values in the last block.
template <class T>
double add_loss_gradients(const Context& context, Tensor<T, 1>& gradients, Activations<T>& activations,
                          const Decoder<T>& decoder, const Batch<T>& batch, double factor);

// The loss; `gradients` are assigned.
template <class T>
double decoder_loss_and_gradients(const Context& context, Tensor<T, 1>& gradients, Activations<T>& activations,
                                  const Decoder<T>& decoder, const Batch<T>& batch);

}  // namespace heedful

#endif  // HEEDFUL_DECODER_LOSS_H_
