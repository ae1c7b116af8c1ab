// The decoder: tokens in, logits out, and back.
//
//     x  = embedding(tokens) + position                          [B, T, C]
//     x  = block(x)   L times: norm → attention → add → norm → feed-forward → add   (block.h)
//     logits = final_norm(x) · unembedding                       [B, T, V]
//
// forward() keeps in an Activations what backward() reads. With a KvCache the T tokens continue the sequences in it:
// the same arithmetic on the new rows alone, so the logits have the same bits as without.
#ifndef HEEDFUL_DECODER_DECODER_H_
#define HEEDFUL_DECODER_DECODER_H_

#include "heedful/attention/kv_cache.h"
#include "heedful/core/context.h"
#include "heedful/core/tensor.h"
#include "heedful/decoder/activations.h"
#include "heedful/decoder/config.h"
#include "heedful/decoder/parameters.h"

namespace heedful {

// A model: its shape and its numbers.
template <class T>
struct Decoder {
  DecoderConfig config;
  Tensor<T, 1> parameters;  // [parameter_count(config)]

  DecoderWeights<const T> weights() const { return bind_weights<const T>(config, parameters.data()); }
};

// Logits [B, n, V] of the last n = `wanted` positions of tokens [B, T], or of all T where it is 0; a view on
// `activations`, valid until its next use. Asking for fewer saves most of the last block's work and changes no bit of
// the rest. Throws Error where a token is outside the vocabulary or the sequence longer than the context.
template <class T>
View<const T, 3> decoder_forward(const Context& context, Activations<T>& activations, const Decoder<T>& decoder,
                                 View<const Index, 2> tokens, KvCache<T>* cache = nullptr, Index wanted = 0);

// Adds the gradient of every parameter to `gradients` [parameter_count], given dlogits [B, n, V], after a forward
// pass without a cache that filled `activations`.
template <class T>
void decoder_backward(const Context& context, View<T, 1> gradients, Activations<T>& activations, In<T, 3> dlogits,
                      const Decoder<T>& decoder, View<const Index, 2> tokens);

}  // namespace heedful

#endif  // HEEDFUL_DECODER_DECODER_H_
