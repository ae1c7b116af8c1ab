#include "heedful/decoder/loss.h"

#include <span>

#include "heedful/kernels/cross_entropy.h"

namespace heedful {
namespace {

template <class T>
double loss_of_logits(const Context& context, View<T, 2> dlogits, const Activations<T>& activations,
                      const Batch<T>& batch) {
  const std::span<const Index> targets(batch.targets.data(), static_cast<std::size_t>(batch.targets.size()));
  const View<const T, 1> weights(batch.loss_weights.data(), {batch.loss_weights.size()});
  return cross_entropy<T>(context, {dlogits, {}}, activations.logits, targets, weights);
}

}  // namespace

template <class T>
double decoder_loss(const Context& context, Activations<T>& activations, const Decoder<T>& decoder,
                    const Batch<T>& batch) {
  decoder_forward<T>(context, activations, decoder, batch.tokens);
  return loss_of_logits<T>(context, {}, activations, batch);
}

template <class T>
double decoder_loss_and_gradients(const Context& context, Tensor<T, 1>& gradients, Activations<T>& activations,
                                  const Decoder<T>& decoder, const Batch<T>& batch) {
  const View<const T, 3> logits = decoder_forward<T>(context, activations, decoder, batch.tokens);
  activations.prepare_backward();
  const double loss = loss_of_logits<T>(context, activations.room.dlogits.view(), activations, batch);
  gradients.fill(0);
  const View<const T, 3> dlogits(activations.room.dlogits.data(), logits.extents());
  decoder_backward<T>(context, gradients.view(), activations, dlogits, decoder, batch.tokens);
  return loss;
}

#define HEEDFUL_INSTANTIATE(T)                                                                                     \
  template double decoder_loss<T>(const Context&, Activations<T>&, const Decoder<T>&, const Batch<T>&);            \
  template double decoder_loss_and_gradients<T>(const Context&, Tensor<T, 1>&, Activations<T>&, const Decoder<T>&, \
                                                const Batch<T>&);
HEEDFUL_INSTANTIATE(float)
HEEDFUL_INSTANTIATE(double)
#undef HEEDFUL_INSTANTIATE

}  // namespace heedful
