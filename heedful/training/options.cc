#include "heedful/training/options.h"

#include <charconv>
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

template <class Fields, class CorpusType>
void corpus_fields(Fields& f, CorpusType& corpus) {
  f("file", corpus.file);
  f("tokens", corpus.tokens, kTokenKindNames);
  f("blocks", corpus.blocks);
  f("held_out_block", corpus.held_out_block);
  f("evaluate_every", corpus.evaluate_every);
  f("evaluate_windows", corpus.evaluate_windows);
  f("bytes", corpus.bytes);
}

nlohmann::json corpus_to_json(const CorpusOptions& corpus) {
  nlohmann::json json;
  FieldWriter writer(json);
  corpus_fields(writer, corpus);
  writer("hash", fmt::format("{:016x}", corpus.hash));  // 64 bits are more than JSON's numbers hold everywhere
  writer("alphabet", to_utf8(corpus.alphabet));
  return json;
}

CorpusOptions corpus_from_json(const nlohmann::json& json) {
  constexpr const char* kWhere = "config: corpus";
  CorpusOptions corpus;
  std::string hash = "0", alphabet;
  FieldReader reader(json, kWhere);
  corpus_fields(reader, corpus);
  reader("hash", hash);
  reader("alphabet", alphabet);
  reader.refuse_unknown();
  const auto [end, error] = std::from_chars(hash.data(), hash.data() + hash.size(), corpus.hash, 16);
  require(error == std::errc() && end == hash.data() + hash.size(), kWhere,
          "hash: expected up to 16 hexadecimal digits, got {}", nlohmann::json(hash).dump());
  corpus.alphabet = from_utf8(alphabet, kWhere);
  return corpus;
}

template <class Fields, class Options>
void schedule_fields(Fields& f, Options& schedule) {
  f("warmup", schedule.warmup);
  f("decay_steps", schedule.decay_steps);
  f("minimum_rate", schedule.minimum_rate);
  f("clip", schedule.clip);
  f("accumulation", schedule.accumulation);
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

void validate(const Schedule& schedule, const TrainOptions& options) {
  constexpr Index kMost = Index{1} << 40;
  require(0 <= schedule.warmup && schedule.warmup <= kMost, "training", "warmup: expected 0 or more, got {}",
          schedule.warmup);
  require(schedule.decay_steps == 0 || (schedule.warmup < schedule.decay_steps && schedule.decay_steps <= kMost),
          "training", "decay_steps: expected 0 (no decay) or more than the {} steps of warm-up, got {}",
          schedule.warmup, schedule.decay_steps);
  require(std::isfinite(schedule.minimum_rate) && 0 <= schedule.minimum_rate &&
              schedule.minimum_rate <= options.adam.learning_rate,
          "training", "minimum_rate: expected 0 to the learning rate {}, got {}", options.adam.learning_rate,
          schedule.minimum_rate);
  require_number("clip", schedule.clip, 0, 1e30);
  require(schedule.accumulation >= 1 && options.batch % schedule.accumulation == 0, "training",
          "accumulation: expected a divisor of the batch of {}, got {}", options.batch, schedule.accumulation);
}

// The vocabulary and the shortest context that the data ask for.
void validate_data(const TrainOptions& options) {
  if (options.corpus) {
    validate(*options.corpus);
    require(options.corpus->bytes > 0, "training", "corpus: not read yet");
    require(options.model.vocabulary == options.corpus->vocabulary(), "training", "vocabulary: expected {}, got {}",
            options.corpus->vocabulary(), options.model.vocabulary);
    return;
  }
  validate(options.task);
  require(options.model.vocabulary == options.task.vocabulary(), "training", "vocabulary: expected {}, got {}",
          options.task.vocabulary(), options.model.vocabulary);
  require(options.model.context >= options.task.context() - 1, "training", "context: expected at least {}, got {}",
          options.task.context() - 1, options.model.context);
}

}  // namespace

TrainOptions text_defaults(const CorpusOptions& corpus) {
  TrainOptions options;
  options.corpus = corpus;
  DecoderConfig& model = options.model;
  model.context = 64;
  model.width = 128;
  model.heads = model.kv_heads = 4;
  model.layers = 4;
  model.feed_forward = 512;
  model.activation = FeedForward::gelu;
  model.bias = model.output_bias = false;
  model.tied = true;
  options.adam = {.learning_rate = 1e-3, .beta2 = 0.99, .weight_decay = 0.1};
  options.steps = 2000;
  options.batch = 12;
  options.schedule = {.warmup = 100, .decay_steps = 2000, .minimum_rate = 1e-4, .clip = 1};
  fit_model_to_task(options);
  return options;
}

void fit_model_to_task(TrainOptions& options) {
  if (options.corpus) {
    options.model.vocabulary = options.corpus->vocabulary();
    return;
  }
  options.model.vocabulary = options.task.vocabulary();
  options.model.context = options.task.context();
}

void validate(const TrainOptions& options) {
  validate_data(options);
  validate(options.model);
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
  validate(options.schedule, options);
}

void to_json(nlohmann::json& json, const TrainOptions& options) {
  json = nlohmann::json::object();
  if (options.corpus) {
    json["corpus"] = corpus_to_json(*options.corpus);
  } else {
    FieldWriter task(json["task"]);
    task_fields(task, options.task);
  }
  FieldWriter training(json["training"]);
  training_fields(training, options);
  if (options.schedule != Schedule{}) schedule_fields(training, options.schedule);
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
    } else if (key == "corpus") {
      options.corpus = corpus_from_json(value);
    } else if (key == "model") {
      options.model = value.get<DecoderConfig>();
    } else if (key == "training") {
      FieldReader reader(value, "config: training");
      training_fields(reader, options);
      schedule_fields(reader, options.schedule);
      reader.refuse_unknown();
    } else {
      fail("config", "unknown key \"{}\"; expected task or corpus, model, training", key);
    }
  }
  require(!json.contains("task") || !json.contains("corpus"), "config", "expected a task or a corpus, got both");
  fit_model_to_task(options);
}

}  // namespace heedful
