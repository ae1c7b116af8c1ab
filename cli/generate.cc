// heedful generate: a run's answer to one question.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/precision.h"
#include "cli/prompt.h"
#include "cli/run_folder.h"
#include "heedful/core/error.h"
#include "heedful/inference/generate.h"
#include "heedful/training/checkpoint.h"

namespace heedful::cli {
namespace {

struct GenerateFlags {
  std::string run, prompt, cache_type = "full";
  std::optional<Index> tokens;
  bool no_cache = false, best = false, json = false;
  SamplerOptions sampler;
  int threads = 1;
};

constexpr Index kTextTokens = 200;

// Text is shown with its prompt in front; an answer to a question stands alone.
template <class T>
void print(const Generation<T>& generation, const std::optional<CorpusOptions>& corpus, const GenerateFlags& flags) {
  const Index n = generation.tokens.extent(1), vocabulary = generation.logits.extent(2);
  const std::vector<Index> tokens(generation.tokens.begin(), generation.tokens.end());
  std::string text;
  if (corpus) text = Tokenizer(corpus->tokens, corpus->alphabet).decode(Tokens(tokens.begin(), tokens.end()));
  if (!flags.json) {
    fmt::print("{}\n", corpus ? flags.prompt + text : fmt::format("{}", fmt::join(tokens, " ")));
    return;
  }
  std::vector<std::vector<T>> logits;
  for (Index i = 0; i < n; ++i) {
    const T* row = generation.logits.data() + i * vocabulary;
    logits.emplace_back(row, row + vocabulary);
  }
  nlohmann::ordered_json object;
  if (corpus) object["text"] = text;
  object["tokens"] = tokens;
  object["logits"] = logits;
  // Bytes need not make whole characters.
  fmt::print("{}\n", object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

int run(const GenerateFlags& flags) {
  const RunFolder folder(flags.run);
  const std::filesystem::path path = folder.chosen(flags.best);
  return with_precision(load_checkpoint_options(path).precision, [&]<class T>() {
    const TrainingState<T> state = load_checkpoint<T>(path);
    const std::optional<CorpusOptions>& corpus = state.options.corpus;
    const Tensor<Index, 2> prompt =
        corpus ? text_prompt(flags.prompt, *corpus) : parse_prompt(flags.prompt, state.options.task);
    GenerateOptions options;
    options.tokens = flags.tokens.value_or(corpus ? kTextTokens : prompt.extent(1) - 1);  // as the question has
    options.slide = corpus.has_value();
    options.cache = !flags.no_cache;
    options.cache_type = enum_value<CacheType>(flags.cache_type, "flags", "--cache-type", kCacheTypeNames);
    options.sampler = flags.sampler;
    print(generate<T>(Context(flags.threads), state.decoder, prompt, options), corpus, flags);
    return kDone;
  });
}

}  // namespace

void add_generate(CLI::App& app, int& exit_code) {
  CLI::App& command = *app.add_subcommand("generate", "Answer a question with a trained run, or go on with a text");
  auto flags = std::make_shared<GenerateFlags>();
  command.add_option("run", flags->run, "Run folder")->required()->type_name("RUN");
  command
      .add_option("--prompt", flags->prompt,
                  "Symbols of the question (the separator is added), or text to go on with")
      ->required();
  command.add_option("--tokens", flags->tokens, "How many to generate [as many as the question has; of text 200]");
  command.add_flag("--best", flags->best, "The state with the best held-out score instead of the last");
  CLI::Option* const no_cache = command.add_flag("--no-cache", flags->no_cache,
                                                 "Recompute the whole sequence each step; the bits are the same");
  command
      .add_option("--cache-type", flags->cache_type,
                  "Keys and values kept as they are (full), or in half of a float (bf16)")
      ->capture_default_str()
      ->excludes(no_cache);
  command.add_option("--temperature", flags->sampler.temperature, "0 takes the largest logit")->capture_default_str();
  command.add_option("--top-k", flags->sampler.top_k, "Draw among the k likeliest; 0 is all")->capture_default_str();
  command.add_option("--top-p", flags->sampler.top_p, "Draw among the likeliest that reach this probability")
      ->capture_default_str();
  command.add_option("--seed", flags->sampler.seed, "Of the draws")->capture_default_str();
  command.add_option("--threads", flags->threads, "Threads to use")->capture_default_str();
  command.add_flag("--json", flags->json, "Print one JSON object: tokens, and the logits of each");
  command.footer("Example: heedful generate runs/copy --prompt \"17 3 0 12 7 9\"");
  command.callback([flags, &exit_code] { exit_code = run(*flags); });
}

}  // namespace heedful::cli
