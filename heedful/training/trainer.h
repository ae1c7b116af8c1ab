// Trains a decoder on a task, or on a corpus of text, step by step.
//
//     Trainer<float> trainer(new_training<float>(options), context);
//     while (trainer.state().step < options.steps) trainer.step();
//
//     options.corpus = corpus.options;                                        text
//     Trainer<float> trainer(new_training<float>(options), context, &corpus);
//
// A training's state is everything the next step depends on. Saving it and going on from it (checkpoint.h) gives the
// same bits as never having stopped.
#ifndef HEEDFUL_TRAINING_TRAINER_H_
#define HEEDFUL_TRAINING_TRAINER_H_

#include <optional>

#include "heedful/core/context.h"
#include "heedful/core/random.h"
#include "heedful/core/tensor.h"
#include "heedful/decoder/loss.h"
#include "heedful/training/held_out.h"
#include "heedful/training/options.h"

namespace heedful {

// The best score on a corpus' held-out part so far.
struct BestScore {
  Index step = 0;
  double loss = 0;
};

template <class T>
struct TrainingState {
  TrainOptions options;
  Decoder<T> decoder;
  Tensor<T, 1> first_moment, second_moment;  // Adam's, [parameter_count]
  Random random{0};                          // draws the batches, after the initial parameters
  Index step = 0;                            // steps done
  double loss = 0;                           // of the last step's batch, before its update
  std::optional<BestScore> best;
};

// Parameters drawn from the options' seed, nothing trained. Throws Error where the options make no training.
template <class T>
TrainingState<T> new_training(const TrainOptions& options);

template <class T>
class Trainer {
 public:
  // `corpus` is the one that the options name and outlives the trainer; none for a task. Throws Error otherwise.
  Trainer(TrainingState<T> state, const Context& context, const Corpus* corpus = nullptr);

  // Draws a batch, computes its loss and gradients, updates the parameters; returns the loss. Throws Error, and
  // leaves the state as it was, where the loss or a gradient is not finite.
  double step();

  // The score on the held-out part now, on the windows that the corpus' options ask for. Remembers the best; the
  // earliest where two are equal.
  HeldOutScore evaluate();

  const TrainingState<T>& state() const { return state_; }

 private:
  TrainingState<T> state_;
  const Context& context_;
  const Corpus* corpus_;
  Batch<T> batch_;
  Activations<T> activations_;
  Tensor<T, 1> gradients_;
};

}  // namespace heedful

#endif  // HEEDFUL_TRAINING_TRAINER_H_
