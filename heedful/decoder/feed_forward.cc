#include "heedful/decoder/feed_forward.h"

#include "heedful/core/check.h"
#include "heedful/kernels/activation.h"
#include "heedful/kernels/linear.h"

namespace heedful {
namespace {

Activation activation_kind(FeedForward kind) {
  switch (kind) {
    case FeedForward::relu:
      return Activation::relu;
    case FeedForward::gelu:
      return Activation::gelu;
    case FeedForward::gelu_tanh:
      return Activation::gelu_tanh;
    case FeedForward::swiglu:
      return Activation::silu;
  }
  HEEDFUL_CHECK(false);
  return Activation::relu;
}

}  // namespace

template <class T>
void feed_forward_forward(const Context& context, View<T, 2> y, BlockActivations<T>& activations, View<const T, 2> x,
                          const BlockWeights<const T>& weights, const DecoderConfig& config,
                          View<const T, 2> residual) {
  const Activation kind = activation_kind(config.activation);
  linear_forward<T>(context, activations.up, x, weights.up.weight, weights.up.bias);
  if (config.gated()) {
    linear_forward<T>(context, activations.gate, x, weights.gate.weight, weights.gate.bias);
    gated_forward<T>(context, activations.hidden, {activations.gate, activations.up}, kind);
  } else {
    activation_forward<T>(context, activations.hidden, activations.up, kind);
  }
  linear_forward<T>(context, y, activations.hidden, weights.down.weight, weights.down.bias, residual);
}

template <class T>
void feed_forward_backward(const Context& context, const BackwardRoom<T>& room, const BlockWeights<T>& gradients,
                           View<const T, 2> dy, const FeedForwardSaved<T>& saved,
                           const BlockWeights<const T>& weights) {
  const auto& [x, activations, config] = saved;
  const Activation kind = activation_kind(config.activation);
  linear_backward<T>(context, {room.dhidden, gradients.down.weight, gradients.down.bias}, dy, activations.hidden,
                     weights.down.weight);
  if (config.gated()) {
    gated_backward<T>(context, {room.dgate, room.dup}, room.dhidden, {activations.gate, activations.up}, kind);
  } else {
    activation_backward<T>(context, room.dup, room.dhidden, activations.up, kind);
  }
  linear_backward<T>(context, {room.dnorm, gradients.up.weight, gradients.up.bias}, room.dup, x, weights.up.weight);
  if (config.gated()) {
    linear_backward<T>(context, {room.dnorm, gradients.gate.weight, gradients.gate.bias, /*accumulate_dx=*/true},
                       room.dgate, x, weights.gate.weight);
  }
}

#define HEEDFUL_INSTANTIATE(T)                                                                                 \
  template void feed_forward_forward<T>(const Context&, View<T, 2>, BlockActivations<T>&, View<const T, 2>,    \
                                        const BlockWeights<const T>&, const DecoderConfig&, View<const T, 2>); \
  template void feed_forward_backward<T>(const Context&, const BackwardRoom<T>&, const BlockWeights<T>&,       \
                                         View<const T, 2>, const FeedForwardSaved<T>&,                         \
                                         const BlockWeights<const T>&);
HEEDFUL_INSTANTIATE(float)
HEEDFUL_INSTANTIATE(double)
#undef HEEDFUL_INSTANTIATE

}  // namespace heedful
