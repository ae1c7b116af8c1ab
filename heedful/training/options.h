// Everything that determines a training run; two runs with equal options give the same bits.
#ifndef HEEDFUL_TRAINING_OPTIONS_H_
#define HEEDFUL_TRAINING_OPTIONS_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "heedful/decoder/config.h"
#include "heedful/kernels/adam.h"
#include "heedful/training/corpus.h"
#include "heedful/training/schedule.h"
#include "heedful/training/task.h"

namespace heedful {

enum class Precision { f32, f64 };
inline constexpr EnumName<Precision> kPrecisionNames[] = {{Precision::f32, "f32"}, {Precision::f64, "f64"}};

struct TrainOptions {
  Task task;
  std::optional<CorpusOptions> corpus;  // text to learn from, in place of the task
  DecoderConfig model;                  // vocabulary and context follow from the task; of a corpus, the vocabulary
  AdamOptions adam{.learning_rate = 3e-3};
  Schedule schedule;  // a constant rate, nothing clipped
  Index steps = 1500;
  Index batch = 32;
  std::uint64_t seed = 0;
  Precision precision = Precision::f32;
};

// A training on text where nothing else is said: nanoGPT's small character model for a CPU (4 layers, 4 heads, width
// 128, context 64, 12 windows a step, 2000 steps).
TrainOptions text_defaults(const CorpusOptions& corpus);

// Sets the model's vocabulary and context from the task, or its vocabulary from the corpus.
void fit_model_to_task(TrainOptions& options);

void validate(const TrainOptions& options);  // throws Error

// {"task": {…} or "corpus": {…}, "model": {…}, "training": {…}}. The schedule stands among the training's keys where
// it is not the default. from_json starts from the defaults (of a task), fits the model to the task or corpus, and
// refuses unknown keys.
void to_json(nlohmann::json& json, const TrainOptions& options);
void from_json(const nlohmann::json& json, TrainOptions& options);

}  // namespace heedful

#endif  // HEEDFUL_TRAINING_OPTIONS_H_
