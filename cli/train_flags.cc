#include "cli/train_flags.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "heedful/core/error.h"
#include "heedful/formats/bytes.h"

namespace heedful::cli {
namespace {

constexpr const char* kText = "Text";
constexpr const char* kSchedule = "Schedule";

template <class Value>
void set(Value& target, const std::optional<Value>& value) {
  if (value) target = *value;
}

TrainOptions read_config(const std::string& path) {
  constexpr Index kMostBytes = Index{1} << 24;  // an alphabet may be long
  const auto bytes = read_file(path, kMostBytes);
  const auto json = nlohmann::json::parse(as_text(bytes), nullptr, /*allow_exceptions=*/false);
  require(!json.is_discarded(), "config", "{}: not JSON", path);
  return json.get<TrainOptions>();
}

// A flag that means nothing for this run is a mistake, not a wish to ignore.
void refuse(const char* flag, bool given, const char* what) {
  require(!given, "flags", "{}: is for a run on {}", flag, what);
}

void refuse_flags_of_the_other_kind(const TrainFlags& flags, bool text) {
  if (text) {
    refuse("--task", flags.task.has_value(), "a task");
    refuse("--length", flags.length.has_value(), "a task");
    refuse("--alphabet", flags.alphabet.has_value(), "a task");
  } else {
    refuse("--tokens", flags.tokens.has_value(), "text (--corpus)");
    refuse("--context", flags.context.has_value(), "text (--corpus)");
    refuse("--blocks", flags.blocks.has_value(), "text (--corpus)");
    refuse("--held-out-block", flags.held_out_block.has_value(), "text (--corpus)");
    refuse("--evaluate-every", flags.evaluate_every.has_value(), "text (--corpus)");
    refuse("--evaluate-windows", flags.evaluate_windows.has_value(), "text (--corpus)");
  }
}

CorpusOptions corpus_options(const TrainFlags& flags, CorpusOptions corpus) {
  if (flags.corpus) {
    corpus.file = *flags.corpus;
    corpus.bytes = 0;  // whatever file a config named before
  }
  if (flags.tokens) {
    corpus.tokens = enum_value<TokenKind>(*flags.tokens, "flags", "--tokens", kTokenKindNames);
    corpus.bytes = 0;
  }
  if (corpus.bytes == 0) corpus.alphabet.clear();
  if (flags.blocks && !flags.held_out_block) corpus.held_out_block = *flags.blocks;
  set(corpus.blocks, flags.blocks);
  set(corpus.held_out_block, flags.held_out_block);
  set(corpus.evaluate_every, flags.evaluate_every);
  set(corpus.evaluate_windows, flags.evaluate_windows);
  return corpus;
}

// Where no config says otherwise, the schedule of a text follows its length and its rate: warm-up for a twentieth of
// the steps, at most 100, then down to a tenth of the rate at the last.
void fit_schedule(TrainOptions& options) {
  options.schedule.warmup = std::min(Index{100}, std::max(options.steps, Index{0}) / 20);
  options.schedule.decay_steps = std::max(options.steps, Index{0});
  options.schedule.minimum_rate = options.adam.learning_rate / 10;
}

}  // namespace

TrainOptions options_from(const TrainFlags& flags, std::optional<Corpus>& corpus) {
  TrainOptions options = flags.config ? read_config(*flags.config) : TrainOptions{};
  const bool text = flags.corpus || options.corpus;
  refuse_flags_of_the_other_kind(flags, text);
  const bool new_text = text && !options.corpus;
  if (text) {
    corpus = read_corpus(corpus_options(flags, options.corpus.value_or(CorpusOptions{})));
    if (!flags.config) options = text_defaults(corpus->options);
    options.corpus = corpus->options;
    options.corpus->file = std::filesystem::absolute(corpus->options.file).string();
    set(options.model.context, flags.context);
  }
  if (flags.task) options.task.kind = enum_value<TaskKind>(*flags.task, "flags", "--task", kTaskNames);
  if (flags.precision) {
    options.precision = enum_value<Precision>(*flags.precision, "flags", "--precision", kPrecisionNames);
  }
  set(options.task.length, flags.length);
  set(options.task.alphabet, flags.alphabet);
  set(options.steps, flags.steps);
  set(options.batch, flags.batch);
  set(options.adam.learning_rate, flags.learning_rate);
  set(options.adam.beta2, flags.beta2);
  set(options.adam.weight_decay, flags.weight_decay);
  if (new_text && !flags.config) fit_schedule(options);
  set(options.schedule.warmup, flags.warmup);
  set(options.schedule.decay_steps, flags.decay_steps);
  set(options.schedule.minimum_rate, flags.minimum_rate);
  set(options.schedule.clip, flags.clip);
  set(options.schedule.accumulation, flags.accumulation);
  set(options.seed, flags.seed);
  apply(flags.model, options.model);
  if (!text) validate(options.task);
  fit_model_to_task(options);
  validate(options);
  if (text) require_windows(*corpus, options.model.context);
  return options;
}

void add_train_flags(CLI::App& command, TrainFlags& flags) {
  command.add_option("--task", flags.task, "What to learn: copy|sort|reverse [copy]");
  command.add_option("--length", flags.length, "Symbols in a question [6]");
  command.add_option("--alphabet", flags.alphabet, "Symbols to draw from [20]");
  command.add_option("--steps", flags.steps, "Training steps [1500; text 2000]");
  command.add_option("--batch", flags.batch, "Sequences a step [32; text 12]");
  command.add_option("--lr", flags.learning_rate, "Adam's learning rate [0.003; text 0.001]");
  command.add_option("--beta2", flags.beta2, "Adam's memory of squared gradients [0.999; text 0.99]");
  command.add_option("--weight-decay", flags.weight_decay, "Decoupled weight decay (AdamW) [0; text 0.1]");
  command.add_option("--seed", flags.seed, "Of the parameters and the batches [0]");
  command.add_option("--precision", flags.precision, "Numbers: f32|f64 [f32]");

  command.add_option("--corpus", flags.corpus, "Learn from this text instead of a task")
      ->type_name("FILE")
      ->group(kText);
  command.add_option("--tokens", flags.tokens, "What a token is: bytes|chars [chars]")->group(kText);
  command.add_option("--context", flags.context, "Tokens a prediction may look back on [64]")->group(kText);
  command.add_option("--blocks", flags.blocks, "The text is cut into this many equal blocks [10]")->group(kText);
  command.add_option("--held-out-block", flags.held_out_block, "The block kept from training, from 1 [the last]")
      ->group(kText);
  command.add_option("--evaluate-every", flags.evaluate_every, "Steps between scores of that block [250]")
      ->group(kText);
  command.add_option("--evaluate-windows", flags.evaluate_windows, "Windows of each such score; 0 is all [256]")
      ->group(kText);

  command.add_option("--warmup", flags.warmup, "Steps to reach the learning rate [0; text steps/20, at most 100]")
      ->group(kSchedule);
  command.add_option("--decay-steps", flags.decay_steps, "Cosine decay ends here; 0 is none [0; text --steps]")
      ->group(kSchedule);
  command.add_option("--min-lr", flags.minimum_rate, "Rate after the decay [0; text lr/10]")->group(kSchedule);
  command.add_option("--clip", flags.clip, "Largest norm of all gradients together; 0 is off [0; text 1]")
      ->group(kSchedule);
  command.add_option("--accumulate", flags.accumulation, "Micro-batches a step; divides the batch [1]")
      ->group(kSchedule);

  add_model_flags(command, flags.model);
  command.add_option("--config", flags.config, "Start from a config.json; flags change it")->type_name("FILE");
  command.add_option("--out", flags.out, "Run folder [runs/TASK-LENGTH-seed-SEED, runs/FILE-seed-SEED]")
      ->type_name("DIR");
  command.add_flag("--resume", flags.resume, "Go on with the run in --out; --steps may raise its goal");
  command.add_option("--checkpoint-every", flags.checkpoint_every, "Steps between checkpoints")
      ->capture_default_str();
  command.add_option("--threads", flags.threads, "Changes the time, not one bit of the result")
      ->capture_default_str();
  command.add_flag("--json", flags.json, "Print one JSON object");
}

}  // namespace heedful::cli
