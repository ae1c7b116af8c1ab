#include "heedful/training/trainer.h"

#include <cmath>
#include <utility>

#include "heedful/core/error.h"

namespace heedful {

template <class T>
TrainingState<T> new_training(const TrainOptions& options) {
  validate(options);
  TrainingState<T> state;
  state.options = options;
  state.random = Random(options.seed);
  state.decoder = {options.model, initial_parameters<T>(options.model, state.random)};
  state.first_moment = Tensor<T, 1>(state.decoder.parameters.extents());
  state.second_moment = Tensor<T, 1>(state.decoder.parameters.extents());
  return state;
}

template <class T>
Trainer<T>::Trainer(TrainingState<T> state, const Context& context)
    : state_(std::move(state)),
      context_(context),
      batch_(make_batch<T>(state_.options.task, state_.options.batch)),
      gradients_(state_.decoder.parameters.extents()) {}

template <class T>
double Trainer<T>::step() {
  draw_batch(batch_, state_.options.task, state_.random);
  const double loss = decoder_loss_and_gradients(context_, gradients_, activations_, state_.decoder, batch_);
  require(std::isfinite(loss), "training", "the loss became {} at step {}; a lower learning rate than {} may help",
          loss, state_.step + 1, state_.options.adam.learning_rate);
  ++state_.step;
  adam_step<T>(context_, state_.decoder.parameters.view(), {state_.first_moment, state_.second_moment}, gradients_,
               state_.step, state_.options.adam);
  state_.loss = loss;
  return loss;
}

#define HEEDFUL_INSTANTIATE(T)                                    \
  template TrainingState<T> new_training<T>(const TrainOptions&); \
  template class Trainer<T>;
HEEDFUL_INSTANTIATE(float)
HEEDFUL_INSTANTIATE(double)
#undef HEEDFUL_INSTANTIATE

}  // namespace heedful
