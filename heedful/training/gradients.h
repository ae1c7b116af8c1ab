// The gradient of one step: of a batch read in pieces, and kept within a norm.
//
//     loss = Σ w·loss(b,t) / Σ w,   both sums over the whole batch
//
// k micro-batches of B/k sequences one after the other give this loss and its gradient, not the mean of k means: each
// counts by the weight of its own tokens. Activations take the room of one micro-batch. The result differs from that
// of the whole batch at once by the rounding of k partial sums; with one micro-batch it has the same bits.
#ifndef HEEDFUL_TRAINING_GRADIENTS_H_
#define HEEDFUL_TRAINING_GRADIENTS_H_

#include "heedful/decoder/loss.h"

namespace heedful {

// `gradients` [parameter_count] are assigned. Throws Error unless 1 ≤ micro_batches divides the batch.
template <class T>
double accumulated_loss_and_gradients(const Context& context, Tensor<T, 1>& gradients, Activations<T>& activations,
                                      const Decoder<T>& decoder, const Batch<T>& batch, Index micro_batches);

// √Σg², summed in double in an order fixed by the length.
template <class T>
double global_norm(const Tensor<T, 1>& gradients);

// Scales the gradients to the norm `most` > 0 where theirs is larger (Pascanu et al., arXiv:1211.5063); returns what
// it was.
template <class T>
double clip_gradients(Tensor<T, 1>& gradients, double most);

}  // namespace heedful

#endif  // HEEDFUL_TRAINING_GRADIENTS_H_
