// The flags of heedful train, and the options they mean.
#ifndef HEEDFUL_CLI_TRAIN_FLAGS_H_
#define HEEDFUL_CLI_TRAIN_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "cli/model_flags.h"
#include "heedful/training/options.h"

namespace heedful::cli {

struct TrainFlags {
  std::optional<std::string> task, corpus, tokens, precision, config;
  std::optional<Index> length, alphabet, steps, batch;
  std::optional<Index> context, blocks, held_out_block, evaluate_every, evaluate_windows;
  std::optional<double> learning_rate, beta2, weight_decay, minimum_rate, clip;
  std::optional<Index> warmup, decay_steps, accumulation;
  std::optional<std::uint64_t> seed;
  ModelFlags model;
  std::string out;
  bool resume = false, json = false;
  int threads = 1;
  Index checkpoint_every = 500;
};

void add_train_flags(CLI::App& command, TrainFlags& flags);

// The options of a new run: those of --config, or the defaults of a task or a text, changed by the flags. Reads the
// corpus, where there is one, into `corpus`. Throws Error.
TrainOptions options_from(const TrainFlags& flags, std::optional<Corpus>& corpus);

}  // namespace heedful::cli

#endif  // HEEDFUL_CLI_TRAIN_FLAGS_H_
