#include "heedful/training/trainer.h"

#include <cmath>
#include <utility>

#include "heedful/core/error.h"
#include "heedful/training/gradients.h"

namespace heedful {
namespace {

template <class T>
Batch<T> batch_for(const TrainOptions& options, const Corpus* corpus) {
  require(options.corpus.has_value() == (corpus != nullptr), "training", "corpus: expected {}, got {}",
          options.corpus ? "one" : "none", corpus != nullptr ? "one" : "none");
  if (corpus == nullptr) return make_batch<T>(options.task, options.batch);
  require(options.corpus->bytes == corpus->options.bytes && options.corpus->hash == corpus->options.hash, "training",
          "corpus: expected the one that the options name, got another");
  return make_windows<T>(options.batch, options.model.context);
}

template <class T>
bool all_finite(const Tensor<T, 1>& numbers) {
  bool finite = true;
  for (const T each : numbers) finite &= std::isfinite(each);
  return finite;
}

}  // namespace

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
Trainer<T>::Trainer(TrainingState<T> state, const Context& context, const Corpus* corpus)
    : state_(std::move(state)),
      context_(context),
      corpus_(corpus),
      batch_(batch_for<T>(state_.options, corpus)),
      gradients_(state_.decoder.parameters.extents()) {}

template <class T>
double Trainer<T>::step() {
  const Schedule& schedule = state_.options.schedule;
  Random random = state_.random;
  if (corpus_ != nullptr) {
    draw_windows(batch_, *corpus_, random);
  } else {
    draw_batch(batch_, state_.options.task, random);
  }
  const double loss = accumulated_loss_and_gradients(context_, gradients_, activations_, state_.decoder, batch_,
                                                     schedule.accumulation);
  require(std::isfinite(loss) && all_finite(gradients_), "training",
          "the loss became {} at step {}, or its gradient infinite; a lower learning rate than {} may help", loss,
          state_.step + 1, state_.options.adam.learning_rate);
  if (schedule.clip > 0) clip_gradients(gradients_, schedule.clip);
  ++state_.step;
  state_.random = random;
  AdamOptions adam = state_.options.adam;
  adam.learning_rate = learning_rate_at(schedule, adam.learning_rate, state_.step);
  adam_step<T>(context_, state_.decoder.parameters.view(), {state_.first_moment, state_.second_moment}, gradients_,
               state_.step, adam);
  state_.loss = loss;
  return loss;
}

template <class T>
HeldOutScore Trainer<T>::evaluate() {
  require(corpus_ != nullptr, "training", "evaluate: a task has no held-out text");
  const HeldOutScore now = score(context_, *corpus_, state_.decoder, state_.options.corpus->evaluate_windows);
  require(now.fresh.tokens > 0, "training", "evaluate: the {} windows hold no line that is new; more may",
          state_.options.corpus->evaluate_windows);
  const double loss = now.fresh.loss();
  if (!state_.best || loss < state_.best->loss) state_.best = {state_.step, loss};
  return now;
}

#define HEEDFUL_INSTANTIATE(T)                                    \
  template TrainingState<T> new_training<T>(const TrainOptions&); \
  template class Trainer<T>;
HEEDFUL_INSTANTIATE(float)
HEEDFUL_INSTANTIATE(double)
#undef HEEDFUL_INSTANTIATE

}  // namespace heedful
