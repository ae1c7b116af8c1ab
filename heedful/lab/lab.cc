#include "heedful/lab/lab.h"

#include <chrono>

#include "heedful/core/error.h"
#include "heedful/lab/experiments.h"
#include "heedful/training/trainer.h"

namespace heedful {
namespace {

constexpr Experiment kExperiments[] = {
    {"attention", "the formula, worked examples, and the working path against the reference", run_attention, 0.1,
     0.5},
    {"scaling", "what dividing by √D does to scores, weights and derivative, and when training feels it", run_scaling,
     4, 150},
    {"masks", "hiding before the softmax against zeroing after it, and what the hidden can change", run_masks, 0.1,
     0.1},
    {"heads", "what heads cost, what they commute with, and merging them in the wrong order", run_heads, 0.1, 0.1},
    {"positions", "what each kind of position defines beyond the trained length", run_positions, 0.1, 0.1},
    {"parameters", "the closed form against the inventory, entry by entry", run_parameters, 0.1, 0.1},
    {"gradients", "the hand-written gradient over nine steps ε, 1e-2 to 1e-10, with the ReLU's kinks found",
     run_gradients, 0.5, 1.5},
    {"quadratic", "time and memory of attention, plain and fused, by length", run_quadratic, 0.4, 3},
    {"cache", "generating with the key-value cache and without: same result, time, bytes", run_cache, 1.5, 1.5},
    {"tasks", "copying and sorting, by generation, over seeds", run_tasks, 18, 100},
    {"ablations", "one piece removed at a time, and the depth at which the place of the norm matters", run_ablations,
     8, 210},
    {"order", "a decoder without positions: what it still knows of order, and where from", run_order, 4, 12},
    {"map", "where the heads of a copying model look", run_map, 5, 14},
    {"intervention", "what a head weighs against what the answer loses without it", run_intervention, 0.3, 0.3},
    {"traps", "nine silent mistakes, each run wrong and right, with the check that tells", run_traps, 0.3, 0.3},
    {"exercises", "the exercises of both documents, computed", run_exercises, 0.2, 0.2},
    {"text", "predicting the next letter of a text whose end is held out", run_text, 7, 25},
};

}  // namespace

const Decoder<double>& Lab::copy_model() const {
  if (!copy_model_) {
    TrainOptions options;
    options.precision = Precision::f64;
    fit_model_to_task(options);
    Trainer<double> trainer(new_training<double>(options), context_);
    while (trainer.state().step < options.steps) {
      trainer.step();
      progress(0, "training the article's copy model");
    }
    copy_model_ = Decoder<double>{trainer.state().decoder.config, trainer.state().decoder.parameters.copy()};
  }
  return *copy_model_;
}

std::span<const Experiment> experiments() {
  return kExperiments;
}

const Experiment& find_experiment(std::string_view name) {
  std::string known;
  for (const Experiment& experiment : kExperiments) {
    if (experiment.name == name) return experiment;
    known += (known.empty() ? "" : ", ") + std::string(experiment.name);
  }
  fail("lab", "experiment: expected one of {}, got \"{}\"", known, name);
}

Report run_experiment(const Experiment& experiment, const Lab& lab) {
  Report report{.name = std::string(experiment.name), .title = std::string(experiment.title)};
  report.file = "heedful/lab/" + report.name + ".cc";
  const auto start = std::chrono::steady_clock::now();
  lab.progress(0, experiment.name);
  experiment.run(report, lab);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace heedful
