// heedful train: a run from its flags, or one that goes on.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/precision.h"
#include "cli/progress.h"
#include "cli/run_folder.h"
#include "cli/summary.h"
#include "cli/text_summary.h"
#include "cli/train_flags.h"
#include "heedful/core/error.h"
#include "heedful/decoder/cost.h"
#include "heedful/training/checkpoint.h"
#include "heedful/training/evaluate.h"
#include "heedful/training/trainer.h"

namespace heedful::cli {
namespace {

std::atomic<bool> interrupted = false;

// A step may be long; who asks twice does not want to wait for it.
void stop_after_this_step(int) {
  interrupted = true;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

// Parameters, gradients and two moments, one step's activations and about as much for the way back: refused where the
// machine has less, rather than dying half-way.
void require_memory(const TrainOptions& options) {
  const Index element = options.precision == Precision::f32 ? 4 : 8;
  const DecoderCost cost = decoder_cost(options.model, options.batch / options.schedule.accumulation, element);
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
  void add(Index step, double loss, double seconds, const std::optional<HeldOutScore>& held_out) {
    file_ << fmt::format("{{\"step\": {}, \"loss\": {}, \"seconds\": {:.6f}", step, loss, seconds);
    if (held_out) {
      file_ << fmt::format(", \"held_out_loss\": {}, \"held_out_bits_per_byte\": {}, \"held_out_loss_all\": {}",
                           held_out->fresh.loss(), held_out->fresh.bits_per_byte(), held_out->all.loss());
    }
    file_ << "}\n";
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

std::string title(const TrainOptions& options) {
  return options.corpus ? "text" : std::string(enum_name<TaskKind>(options.task.kind, kTaskNames));
}

template <class T>
int train(TrainingState<T> start, const TrainFlags& flags, const Corpus* corpus) {
  const RunFolder folder(flags.out);
  const Context context(flags.threads);
  const TrainOptions options = start.options;
  const double seconds_before = folder.seconds_at(start.step);
  folder.trim_metrics(start.step);
  Metrics metrics(folder);
  Trainer<T> trainer(std::move(start), context, corpus);
  std::optional<CorpusReport> report;
  if (corpus != nullptr) {
    report = report_on(*corpus);
    print_overlap(stderr, *report);
  }
  Index saved = -1;
  const auto save = [&] {
    if (saved == trainer.state().step) return;
    metrics.flush();  // never behind the checkpoint
    save_checkpoint(folder.checkpoint(), trainer.state());
    saved = trainer.state().step;
  };
  // The held-out part's score where it is due; the best so far is kept.
  const auto evaluate_if_due = [&]() -> std::optional<HeldOutScore> {
    const Index step = trainer.state().step;
    if (corpus == nullptr || step % options.corpus->evaluate_every != 0) return {};
    const HeldOutScore score = trainer.evaluate();
    if (trainer.state().best->step == step) save_checkpoint(folder.best(), trainer.state());
    return score;
  };

  interrupted = false;
  std::signal(SIGINT, stop_after_this_step);
  std::signal(SIGTERM, stop_after_this_step);
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return seconds_before + std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  {
    ProgressLine progress(fmt::format("train {}", title(options)), "steps");
    std::string shown_score;
    try {
      while (trainer.state().step < options.steps && !interrupted) {
        const double loss = trainer.step();
        const std::optional<HeldOutScore> held_out = evaluate_if_due();
        metrics.add(trainer.state().step, loss, seconds(), held_out);
        if (held_out) shown_score = fmt::format(", held out {:.4f}", held_out->fresh.loss());
        progress.show(trainer.state().step, options.steps, fmt::format("loss {:.6f}{}", loss, shown_score));
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
  if (corpus != nullptr) {
    print_text_summary(text_summary_of(context, trainer.state(), *corpus, trained_seconds), *report, folder,
                       flags.json);
    return kDone;
  }
  const Accuracy accuracy = evaluate<T>(context, trainer.state().decoder, options.task, kSamples, kSampleSeed);
  print_summary(summary_of(trainer.state(), accuracy, trained_seconds), folder, flags.json);
  return kDone;
}

int resume(const TrainFlags& flags, const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    const bool allowed = name == "--resume" || name == "--out" || name == "--steps" || name == "--threads" ||
                         name == "--json" || name == "--checkpoint-every" || name == "--corpus" || name == "--help";
    require(option->count() == 0 || allowed, "flags", "{}: the run has its own; --resume takes --steps and --threads",
            name);
  }
  const RunFolder folder(flags.out);
  folder.require_run();
  folder.lock();
  const TrainOptions options = load_checkpoint_options(folder.checkpoint());
  require(options.corpus || !flags.corpus, "flags", "--corpus: the run is on a task");
  std::optional<Corpus> corpus;
  if (options.corpus) corpus = corpus_of(options, flags.corpus);
  return with_precision(options.precision, [&]<class T>() {
    TrainingState<T> state = load_checkpoint<T>(folder.checkpoint());
    if (flags.steps) state.options.steps = *flags.steps;
    require(state.options.steps >= state.step, "flags", "--steps: the run has done {} already, got {}", state.step,
            state.options.steps);
    folder.write_config(state.options);
    return train<T>(std::move(state), flags, corpus ? &*corpus : nullptr);
  });
}

std::string default_folder(const TrainOptions& options) {
  const std::string name = options.corpus ? std::filesystem::path(options.corpus->file).stem().string()
                                          : fmt::format("{}-{}", title(options), options.task.length);
  return fmt::format("runs/{}-seed-{}", name, options.seed);
}

int run(TrainFlags& flags, const CLI::App& command) {
  require(flags.checkpoint_every >= 1, "flags", "--checkpoint-every: expected at least 1, got {}",
          flags.checkpoint_every);
  const Context threads_are_sane(flags.threads);
  if (flags.resume) {
    require(!flags.out.empty(), "flags", "--resume: expected --out with the run's folder");
    return resume(flags, command);
  }
  std::optional<Corpus> corpus;
  const TrainOptions options = options_from(flags, corpus);
  if (flags.out.empty()) flags.out = default_folder(options);
  const RunFolder folder(flags.out);
  const auto refuse_a_second_run = [&] {
    require(!folder.has_checkpoint(), "run", "{}: holds a run already; go on with --resume, or name another --out",
            flags.out);
  };
  refuse_a_second_run();
  require_memory(options);
  return with_precision(options.precision, [&]<class T>() {
    TrainingState<T> state = new_training<T>(options);
    folder.create();
    folder.lock();
    refuse_a_second_run();  // one that ended since
    folder.write_config(options);
    return train<T>(std::move(state), flags, corpus ? &*corpus : nullptr);
  });
}

}  // namespace

void add_train(CLI::App& app, int& exit_code) {
  CLI::App& command = *app.add_subcommand("train", "Train a decoder on a synthetic task or on text");
  auto flags = std::make_shared<TrainFlags>();
  add_train_flags(command, *flags);
  command.footer("Example: heedful train --task sort --length 6 --steps 1500 --seed 0 --out runs/sort");
  command.callback([flags, &command, &exit_code] { exit_code = run(*flags, command); });
}

}  // namespace heedful::cli
