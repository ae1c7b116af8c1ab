#include "heedful/training/gradients.h"

#include <algorithm>
#include <cmath>

#include "heedful/core/error.h"
#include "heedful/kernels/sum.h"

namespace heedful {
namespace {

template <class T>
double weight_of(const Tensor<T, 2>& weights) {
  double total = 0;
  for (const T weight : weights) total += static_cast<double>(weight);
  return total;
}

// Rows [begin, end) of a [B, T] tensor.
template <class T>
Tensor<T, 2> rows_of(const Tensor<T, 2>& all, Index begin, Index end) {
  Tensor<T, 2> rows({end - begin, all.extent(1)});
  std::copy_n(all.data() + begin * all.extent(1), rows.size(), rows.data());
  return rows;
}

}  // namespace

template <class T>
double accumulated_loss_and_gradients(const Context& context, Tensor<T, 1>& gradients, Activations<T>& activations,
                                      const Decoder<T>& decoder, const Batch<T>& batch, Index micro_batches) {
  const Index sequences = batch.tokens.extent(0);
  require(micro_batches >= 1 && sequences % micro_batches == 0, "training",
          "accumulation: expected a divisor of the batch of {}, got {}", sequences, micro_batches);
  if (micro_batches == 1) return decoder_loss_and_gradients(context, gradients, activations, decoder, batch);

  const double total = weight_of(batch.loss_weights);
  const Index size = sequences / micro_batches;
  double loss = 0;
  gradients.fill(0);
  for (Index begin = 0; begin < sequences; begin += size) {
    const Batch<T> micro{rows_of(batch.tokens, begin, begin + size), rows_of(batch.targets, begin, begin + size),
                         rows_of(batch.loss_weights, begin, begin + size)};
    const double share = weight_of(micro.loss_weights) / total;
    if (share == 0) continue;  // nothing in it counts
    loss += add_loss_gradients(context, gradients, activations, decoder, micro, share);
  }
  return loss;
}

template <class T>
double global_norm(const Tensor<T, 1>& gradients) {
  return std::sqrt(internal::sum(gradients.size(), [&](Index i) {
    const auto g = static_cast<double>(gradients(i));
    return g * g;
  }));
}

template <class T>
double clip_gradients(Tensor<T, 1>& gradients, double most) {
  const double norm = global_norm(gradients);
  if (norm > most) {
    for (T& each : gradients) each = static_cast<T>(static_cast<double>(each) * (most / norm));
  }
  return norm;
}

#define HEEDFUL_INSTANTIATE(T)                                                                      \
  template double accumulated_loss_and_gradients<T>(const Context&, Tensor<T, 1>&, Activations<T>&, \
                                                    const Decoder<T>&, const Batch<T>&, Index);     \
  template double global_norm<T>(const Tensor<T, 1>&);                                              \
  template double clip_gradients<T>(Tensor<T, 1>&, double);
HEEDFUL_INSTANTIATE(float)
HEEDFUL_INSTANTIATE(double)
#undef HEEDFUL_INSTANTIATE

}  // namespace heedful
