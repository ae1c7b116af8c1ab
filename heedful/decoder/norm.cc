#include "heedful/decoder/norm.h"

#include "heedful/kernels/normalization.h"

namespace heedful {

template <class T>
void norm_forward(const Context& context, NormActivations<T>& activations, View<const T, 2> x,
                  const NormWeights<const T>& weights, const DecoderConfig& config) {
  const NormalizationRecord<T> record{activations.normalized, activations.inverse};
  if (activations.kind == Norm::layer) {
    layer_norm_forward<T>(context, activations.output, record, x, {weights.gain, weights.bias}, config.norm_epsilon);
  } else {
    rms_norm_forward<T>(context, activations.output, record, x, weights.gain, config.norm_epsilon);
  }
}

template <class T>
void norm_backward(const Context& context, View<T, 2> dx, const NormWeights<T>& gradients, View<const T, 2> dy,
                   const NormActivations<T>& activations, const NormWeights<const T>& weights) {
  const NormalizationRecord<const T> record{activations.normalized, activations.inverse};
  const NormalizationGradients<T> out{dx, gradients.gain, gradients.bias};
  if (activations.kind == Norm::layer) {
    layer_norm_backward<T>(context, out, dy, record, weights.gain);
  } else {
    rms_norm_backward<T>(context, out, dy, record, weights.gain);
  }
}

#define HEEDFUL_INSTANTIATE(T)                                                                                      \
  template void norm_forward<T>(const Context&, NormActivations<T>&, View<const T, 2>, const NormWeights<const T>&, \
                                const DecoderConfig&);                                                              \
  template void norm_backward<T>(const Context&, View<T, 2>, const NormWeights<T>&, View<const T, 2>,               \
                                 const NormActivations<T>&, const NormWeights<const T>&);
HEEDFUL_INSTANTIATE(float)
HEEDFUL_INSTANTIATE(double)
#undef HEEDFUL_INSTANTIATE

}  // namespace heedful
