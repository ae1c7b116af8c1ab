#include "heedful/training/options.h"

#include <cmath>

#include "heedful/core/json_fields.h"

namespace heedful {
namespace {

template <class Fields, class TaskType>
void task_fields(Fields& f, TaskType& task) {
  f("kind", task.kind, kTaskNames);
  f("length", task.length);
  f("alphabet", task.alphabet);
}

template <class Fields, class Options>
void training_fields(Fields& f, Options& options) {
  f("steps", options.steps);
  f("batch", options.batch);
  f("seed", options.seed);
  f("precision", options.precision, kPrecisionNames);
  f("learning_rate", options.adam.learning_rate);
  f("beta1", options.adam.beta1);
  f("beta2", options.adam.beta2);
  f("epsilon", options.adam.epsilon);
  f("weight_decay", options.adam.weight_decay);
}

void require_number(const char* key, double value, double least, double below) {
  require(std::isfinite(value) && value >= least && value < below, "training",
          "{}: expected a number from {} to below {}, got {}", key, least, below, value);
}

}  // namespace

void fit_model_to_task(TrainOptions& options) {
  options.model.vocabulary = options.task.vocabulary();
  options.model.context = options.task.context();
}

void validate(const TrainOptions& options) {
  validate(options.task);
  validate(options.model);
  require(options.model.vocabulary == options.task.vocabulary(), "training", "vocabulary: expected {}, got {}",
          options.task.vocabulary(), options.model.vocabulary);
  require(options.model.context >= options.task.context() - 1, "training", "context: expected at least {}, got {}",
          options.task.context() - 1, options.model.context);
  require(0 <= options.steps && options.steps <= Index{1} << 40, "training", "steps: expected 0 or more, got {}",
          options.steps);
  require(1 <= options.batch && options.batch <= 1 << 20, "training", "batch: expected 1 to {}, got {}", 1 << 20,
          options.batch);
  const AdamOptions& adam = options.adam;
  require_number("learning_rate", adam.learning_rate, 0, 1e6);
  require_number("beta1", adam.beta1, 0, 1);
  require_number("beta2", adam.beta2, 0, 1);
  require_number("weight_decay", adam.weight_decay, 0, 1e6);
  require(std::isfinite(adam.epsilon) && adam.epsilon > 0, "training", "epsilon: expected a positive number, got {}",
          adam.epsilon);
}

void to_json(nlohmann::json& json, const TrainOptions& options) {
  json = nlohmann::json::object();
  FieldWriter task(json["task"]), training(json["training"]);
  task_fields(task, options.task);
  training_fields(training, options);
  json["model"] = options.model;
}

void from_json(const nlohmann::json& json, TrainOptions& options) {
  options = TrainOptions{};
  require(json.is_object(), "config", "expected a JSON object, got {}", json.type_name());
  for (const auto& [key, value] : json.items()) {
    if (key == "task") {
      FieldReader reader(value, "config: task");
      task_fields(reader, options.task);
      reader.refuse_unknown();
    } else if (key == "model") {
      options.model = value.get<DecoderConfig>();
    } else if (key == "training") {
      FieldReader reader(value, "config: training");
      training_fields(reader, options);
      reader.refuse_unknown();
    } else {
      fail("config", "unknown key \"{}\"; expected task, model, training", key);
    }
  }
  fit_model_to_task(options);
}

}  // namespace heedful
