// heedful train: a run from its flags, or one that goes on.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/model_flags.h"
#include "cli/precision.h"
#include "cli/progress.h"
#include "cli/run_folder.h"
#include "cli/summary.h"
#include "heedful/core/error.h"
#include "heedful/decoder/cost.h"
#include "heedful/formats/bytes.h"
#include "heedful/training/checkpoint.h"
#include "heedful/training/evaluate.h"
#include "heedful/training/trainer.h"

namespace heedful::cli {
namespace {

struct TrainFlags {
  std::optional<std::string> task, precision, config;
  std::optional<Index> length, alphabet, steps, batch;
  std::optional<double> learning_rate, weight_decay;
  std::optional<std::uint64_t> seed;
  ModelFlags model;
  std::string out;
  bool resume = false, json = false;
  int threads = 1;
  Index checkpoint_every = 500;
};

std::atomic<bool> interrupted = false;

template <class Value>
void set(Value& target, const std::optional<Value>& value) {
  if (value) target = *value;
}

TrainOptions read_config(const std::string& path) {
  const auto bytes = read_file(path);
  const auto json = nlohmann::json::parse(as_text(bytes), nullptr, /*allow_exceptions=*/false);
  require(!json.is_discarded(), "config", "{}: not JSON", path);
  return json.get<TrainOptions>();
}

TrainOptions options_from(const TrainFlags& flags) {
  TrainOptions options = flags.config ? read_config(*flags.config) : TrainOptions{};
  if (flags.task) options.task.kind = enum_value<TaskKind>(*flags.task, "flags", "--task", kTaskNames);
  if (flags.precision) {
    options.precision = enum_value<Precision>(*flags.precision, "flags", "--precision", kPrecisionNames);
  }
  set(options.task.length, flags.length);
  set(options.task.alphabet, flags.alphabet);
  set(options.steps, flags.steps);
  set(options.batch, flags.batch);
  set(options.adam.learning_rate, flags.learning_rate);
  set(options.adam.weight_decay, flags.weight_decay);
  set(options.seed, flags.seed);
  apply(flags.model, options.model);
  validate(options.task);
  fit_model_to_task(options);
  validate(options);
  return options;
}

// Parameters, gradients and two moments, one step's activations and about as much for the way back: refused where the
// machine has less, rather than dying half-way.
void require_memory(const TrainOptions& options) {
  const Index element = options.precision == Precision::f32 ? 4 : 8;
  const DecoderCost cost = decoder_cost(options.model, options.batch, element);
  const double needed =
      4.0 * static_cast<double>(cost.parameter_bytes) + 2.0 * static_cast<double>(cost.activation_bytes);
  const double there = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  require(needed <= there, "memory", "this training needs about {:.1f} GiB, the machine has {:.1f} GiB",
          needed / (1 << 30), there / (1 << 30));
}

// Appends to metrics.jsonl, and says so where the disk does not take it.
class Metrics {
 public:
  explicit Metrics(const RunFolder& folder) : path_(folder.metrics()), file_(path_, std::ios::app) { check(); }
  void add(Index step, double loss, double seconds) {
    file_ << fmt::format("{{\"step\": {}, \"loss\": {}, \"seconds\": {:.6f}}}\n", step, loss, seconds);
    check();
  }
  void flush() {
    file_.flush();
    check();
  }

 private:
  void check() const { require(file_.good(), "run", "{}: cannot be written", path_.string()); }
  std::filesystem::path path_;
  std::ofstream file_;
};

template <class T>
int train(TrainingState<T> start, const TrainFlags& flags) {
  const RunFolder folder(flags.out);
  const Context context(flags.threads);
  const TrainOptions options = start.options;
  const double seconds_before = folder.seconds_at(start.step);
  folder.trim_metrics(start.step);
  Metrics metrics(folder);
  Trainer<T> trainer(std::move(start), context);
  Index saved = -1;
  const auto save = [&] {
    if (saved == trainer.state().step) return;
    metrics.flush();  // never behind the checkpoint
    save_checkpoint(folder.checkpoint(), trainer.state());
    saved = trainer.state().step;
  };

  interrupted = false;
  std::signal(SIGINT, [](int) { interrupted = true; });
  std::signal(SIGTERM, [](int) { interrupted = true; });
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return seconds_before + std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  {
    ProgressLine progress(fmt::format("train {}", enum_name<TaskKind>(options.task.kind, kTaskNames)), "steps");
    try {
      while (trainer.state().step < options.steps && !interrupted) {
        const double loss = trainer.step();
        metrics.add(trainer.state().step, loss, seconds());
        progress.show(trainer.state().step, options.steps, fmt::format("loss {:.6f}", loss));
        if (trainer.state().step % flags.checkpoint_every == 0) save();
      }
    } catch (const Error&) {
      if (trainer.state().step > 0) save();  // what was reached is kept
      throw;
    }
  }
  const double trained_seconds = seconds();
  save();
  if (interrupted) {
    fmt::print(stderr, "stopped at step {} of {}; go on with: heedful train --resume --out {}\n",
               trainer.state().step, options.steps, flags.out);
    return kInterrupted;
  }
  const Accuracy accuracy = evaluate<T>(context, trainer.state().decoder, options.task, kSamples, kSampleSeed);
  print_summary(summary_of(trainer.state(), accuracy, trained_seconds), folder, flags.json);
  return kDone;
}

int resume(const TrainFlags& flags, const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    const bool allowed = name == "--resume" || name == "--out" || name == "--steps" || name == "--threads" ||
                         name == "--json" || name == "--checkpoint-every" || name == "--help";
    require(option->count() == 0 || allowed, "flags", "{}: the run has its own; --resume takes --steps and --threads",
            name);
  }
  const RunFolder folder(flags.out);
  folder.require_run();
  const Precision precision = load_checkpoint_options(folder.checkpoint()).precision;
  return with_precision(precision, [&]<class T>() {
    TrainingState<T> state = load_checkpoint<T>(folder.checkpoint());
    set(state.options.steps, flags.steps);
    require(state.options.steps >= state.step, "flags", "--steps: the run has done {} already, got {}", state.step,
            state.options.steps);
    folder.write_config(state.options);
    return train<T>(std::move(state), flags);
  });
}

int run(TrainFlags& flags, const CLI::App& command) {
  require(flags.checkpoint_every >= 1, "flags", "--checkpoint-every: expected at least 1, got {}",
          flags.checkpoint_every);
  const Context threads_are_sane(flags.threads);
  if (flags.resume) {
    require(!flags.out.empty(), "flags", "--resume: expected --out with the run's folder");
    return resume(flags, command);
  }
  const TrainOptions options = options_from(flags);
  if (flags.out.empty()) {
    flags.out = fmt::format("runs/{}-{}-seed-{}", enum_name<TaskKind>(options.task.kind, kTaskNames),
                            options.task.length, options.seed);
  }
  const RunFolder folder(flags.out);
  require(!folder.has_checkpoint(), "run", "{}: holds a run already; go on with --resume, or name another --out",
          flags.out);
  require_memory(options);
  return with_precision(options.precision, [&]<class T>() {
    TrainingState<T> state = new_training<T>(options);
    folder.create();
    folder.write_config(options);
    return train<T>(std::move(state), flags);
  });
}

}  // namespace

void add_train(CLI::App& app, int& exit_code) {
  CLI::App& command = *app.add_subcommand("train", "Train a decoder on a synthetic task");
  auto flags = std::make_shared<TrainFlags>();
  command.add_option("--task", flags->task, "What to learn: copy|sort|reverse [copy]");
  command.add_option("--length", flags->length, "Symbols in a question [6]");
  command.add_option("--alphabet", flags->alphabet, "Symbols to draw from [20]");
  command.add_option("--steps", flags->steps, "Training steps [1500]");
  command.add_option("--batch", flags->batch, "Sequences a step [32]");
  command.add_option("--lr", flags->learning_rate, "Adam's learning rate [0.003]");
  command.add_option("--weight-decay", flags->weight_decay, "Decoupled weight decay (AdamW) [0]");
  command.add_option("--seed", flags->seed, "Of the parameters and the batches [0]")->check(check_seed);
  command.add_option("--precision", flags->precision, "Numbers: f32|f64 [f32]");
  add_model_flags(command, flags->model);
  command.add_option("--config", flags->config, "Start from a config.json; flags change it")->type_name("FILE");
  command.add_option("--out", flags->out, "Run folder [runs/TASK-LENGTH-seed-SEED]")->type_name("DIR");
  command.add_flag("--resume", flags->resume, "Go on with the run in --out; --steps may raise its goal");
  command.add_option("--checkpoint-every", flags->checkpoint_every, "Steps between checkpoints")
      ->capture_default_str();
  command.add_option("--threads", flags->threads, "Changes the time, not one bit of the result")
      ->capture_default_str();
  command.add_flag("--json", flags->json, "Print one JSON object");
  command.footer("Example: heedful train --task sort --length 6 --steps 1500 --seed 0 --out runs/sort");
  command.callback([flags, &command, &exit_code] { exit_code = run(*flags, command); });
}

}  // namespace heedful::cli
