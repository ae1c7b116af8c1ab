// Everything that determines a training run; two runs with equal options give the same bits.
#ifndef HEEDFUL_TRAINING_OPTIONS_H_
#define HEEDFUL_TRAINING_OPTIONS_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "heedful/decoder/config.h"
#include "heedful/kernels/adam.h"
#include "heedful/training/task.h"

namespace heedful {

enum class Precision { f32, f64 };
inline constexpr EnumName<Precision> kPrecisionNames[] = {{Precision::f32, "f32"}, {Precision::f64, "f64"}};

struct TrainOptions {
  Task task;
  DecoderConfig model;  // vocabulary and context follow from the task
  AdamOptions adam{.learning_rate = 3e-3};
  Index steps = 1500;
  Index batch = 32;
  std::uint64_t seed = 0;
  Precision precision = Precision::f32;
};

// Sets the model's vocabulary and context from the task.
void fit_model_to_task(TrainOptions& options);

void validate(const TrainOptions& options);  // throws Error

// {"task": {…}, "model": {…}, "training": {…}}. from_json starts from the defaults, fits the model to the task and
// refuses unknown keys.
void to_json(nlohmann::json& json, const TrainOptions& options);
void from_json(const nlohmann::json& json, TrainOptions& options);

}  // namespace heedful

#endif  // HEEDFUL_TRAINING_OPTIONS_H_
