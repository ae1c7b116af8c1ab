// A decoder's forward pass whose attention looks elsewhere than it was trained to: the options of every layer's
// attention can be changed (a mask lifted, one key hidden from one head, weights replaced through the bias). With
// nothing changed the result has the bits of decoder_forward.
#ifndef HEEDFUL_LAB_ALTERED_FORWARD_H_
#define HEEDFUL_LAB_ALTERED_FORWARD_H_

#include <functional>

#include "heedful/attention/attention.h"
#include "heedful/decoder/decoder.h"

namespace heedful {

template <class T>
using AlterAttention = std::function<void(AttentionOptions<T>& options, Index layer)>;

// Logits [B, T, V] of tokens [B, T]; what every block gave lies in activations.blocks[…].output [B·T, C]. Pre-norm
// decoders only; throws Error for others.
template <class T>
View<const T, 3> altered_forward(const Context& context, Activations<T>& activations, const Decoder<T>& decoder,
                                 View<const Index, 2> tokens, const AlterAttention<T>& alter);

}  // namespace heedful

#endif  // HEEDFUL_LAB_ALTERED_FORWARD_H_
