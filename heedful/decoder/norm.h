// Layer or RMS normalization of rows [N, C], whichever the config says.
#ifndef HEEDFUL_DECODER_NORM_H_
#define HEEDFUL_DECODER_NORM_H_

#include "heedful/core/context.h"
#include "heedful/decoder/activations.h"
#include "heedful/decoder/config.h"
#include "heedful/decoder/parameters.h"

namespace heedful {

// Leaves activations.output = norm(x), and beside it what the backward pass reads.
template <class T>
void norm_forward(const Context& context, NormActivations<T>& activations, View<const T, 2> x,
                  const NormWeights<const T>& weights, const DecoderConfig& config);

// dx is assigned, the gradients of gain and bias are added to.
template <class T>
void norm_backward(const Context& context, View<T, 2> dx, const NormWeights<T>& gradients, View<const T, 2> dy,
                   const NormActivations<T>& activations, const NormWeights<const T>& weights);

}  // namespace heedful

#endif  // HEEDFUL_DECODER_NORM_H_
