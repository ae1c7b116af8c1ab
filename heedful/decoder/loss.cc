#include "heedful/decoder/loss.h"

#include <span>

#include "heedful/kernels/cross_entropy.h"

namespace heedful {
namespace {

// How many positions at the end of the sequences hold all that counts; at least one.
template <class T>
Index counted_positions(const Tensor<T, 2>& loss_weights) {
  const Index length = loss_weights.extent(1);
  Index first = length - 1;
  for (Index b = 0; b < loss_weights.extent(0); ++b) {
    for (Index t = 0; t < first; ++t) {
      if (loss_weights(b, t) != 0) first = t;
    }
  }
  return length - first;
}

template <class T>
double forward_and_loss(const Context& context, Activations<T>& a, const Decoder<T>& decoder, const Batch<T>& batch,
                        bool gradient) {
  const Index length = batch.tokens.extent(1), n = counted_positions(batch.loss_weights);
  decoder_forward<T>(context, a, decoder, batch.tokens, nullptr, n);
  for (Index row = 0; row < a.targets.size(); ++row) {
    a.targets(row) = batch.targets(row / n, length - n + row % n);
    a.loss_weights(row) = batch.loss_weights(row / n, length - n + row % n);
  }
  View<T, 2> dlogits;
  if (gradient) {
    a.prepare_backward();
    dlogits = a.room(a.logits.extent(0)).dlogits;
  }
  const std::span<const Index> targets(a.targets.data(), static_cast<std::size_t>(a.targets.size()));
  return cross_entropy<T>(context, {dlogits, {}}, a.logits, targets, a.loss_weights);
}

}  // namespace

template <class T>
double decoder_loss(const Context& context, Activations<T>& activations, const Decoder<T>& decoder,
                    const Batch<T>& batch) {
  return forward_and_loss(context, activations, decoder, batch, false);
}

template <class T>
double add_loss_gradients(const Context& context, Tensor<T, 1>& gradients, Activations<T>& activations,
                          const Decoder<T>& decoder, const Batch<T>& batch, double factor) {
  const double loss = forward_and_loss(context, activations, decoder, batch, true);
  const View<T, 2> rows = activations.room(activations.logits.extent(0)).dlogits;
  const View<T, 3> dlogits(rows.data(), {activations.batch, activations.wanted, decoder.config.vocabulary});
  if (factor != 1) {
    for (T& each : std::span(rows.data(), static_cast<std::size_t>(rows.size()))) each *= static_cast<T>(factor);
  }
  decoder_backward<T>(context, gradients.view(), activations, dlogits, decoder, batch.tokens);
  return factor * loss;
}

template <class T>
double decoder_loss_and_gradients(const Context& context, Tensor<T, 1>& gradients, Activations<T>& activations,
                                  const Decoder<T>& decoder, const Batch<T>& batch) {
  gradients.fill(0);
  return add_loss_gradients(context, gradients, activations, decoder, batch, 1);
}

#define HEEDFUL_INSTANTIATE(T)                                                                                     \
  template double decoder_loss<T>(const Context&, Activations<T>&, const Decoder<T>&, const Batch<T>&);            \
  template double add_loss_gradients<T>(const Context&, Tensor<T, 1>&, Activations<T>&, const Decoder<T>&,         \
                                        const Batch<T>&, double);                                                  \
  template double decoder_loss_and_gradients<T>(const Context&, Tensor<T, 1>&, Activations<T>&, const Decoder<T>&, \
                                                const Batch<T>&);
HEEDFUL_INSTANTIATE(float)
HEEDFUL_INSTANTIATE(double)
#undef HEEDFUL_INSTANTIATE

}  // namespace heedful
