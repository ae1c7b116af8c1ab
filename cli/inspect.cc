// heedful inspect: where each head looks while a run answers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/command.h"
#include "cli/precision.h"
#include "cli/prompt.h"
#include "cli/run_folder.h"
#include "heedful/core/error.h"
#include "heedful/inference/generate.h"
#include "heedful/inspection/attention_map.h"
#include "heedful/training/checkpoint.h"

namespace heedful::cli {
namespace {

struct InspectFlags {
  std::string run, prompt;
  bool json = false;
  int threads = 1;
};

// The question, its separator, and the run's own answer but for the last token, which nothing reads.
template <class T>
Tensor<Index, 2> answered(const Context& context, const TrainingState<T>& state, const Tensor<Index, 2>& prompt) {
  const Index start = prompt.extent(1);
  const Generation<T> generation =
      generate<T>(context, state.decoder, prompt, {.tokens = start - 2, .cache = true, .sampler = {}});
  Tensor<Index, 2> tokens({1, 2 * start - 2});
  std::ranges::copy(generation.tokens, std::ranges::copy(prompt, tokens.begin()).out);
  return tokens;
}

std::string token_text(Index token, const Task& task) {
  return token == task.separator() ? "SEP" : fmt::format("{}", token);
}

nlohmann::ordered_json to_json(const Pointer& pointer) {
  nlohmann::ordered_json object = {{"layer", pointer.layer}, {"head", pointer.head}, {"keys", pointer.keys}};
  object["offset"] = pointer.offset ? nlohmann::ordered_json(*pointer.offset) : nlohmann::ordered_json(nullptr);
  object["mean_weight"] = pointer.mean_weight;
  return object;
}

void print(const Tensor<Index, 2>& tokens, const std::vector<Pointer>& table, Index begin, const Task& task) {
  std::string sequence;
  for (Index token : tokens) sequence += (sequence.empty() ? "" : " ") + token_text(token, task);
  fmt::print("sequence: {}\n", sequence);
  fmt::print("heaviest key of positions {} to {}, which emit the answer:\n\n", begin, tokens.extent(1) - 1);
  fmt::print("layer  head  keys{:29}  key - query   mean weight\n", "");
  for (const Pointer& pointer : table) {
    const std::string offset = pointer.offset ? fmt::format("{:+} always", *pointer.offset) : "varies";
    fmt::print("{:5}  {:4}  {:<33}  {:<12}  {:.3f}\n", pointer.layer + 1, pointer.head,
               fmt::format("{}", fmt::join(pointer.keys, " ")), offset, pointer.mean_weight);
  }
}

int run(const InspectFlags& flags) {
  const RunFolder folder(flags.run);
  folder.require_run();
  return with_precision(load_checkpoint_options(folder.checkpoint()).precision, [&]<class T>() {
    const TrainingState<T> state = load_checkpoint<T>(folder.checkpoint());
    require(!state.options.corpus, "run", "{}: a run on text; inspect shows runs on tasks", flags.run);
    const Context context(flags.threads);
    const Tensor<Index, 2> prompt = parse_prompt(flags.prompt, state.options.task);
    const Tensor<Index, 2> tokens = answered(context, state, prompt);
    const Index begin = prompt.extent(1) - 1;
    const auto table = pointer_table(attention_maps<T>(context, state.decoder, tokens), 0, begin);
    if (flags.json) {
      nlohmann::ordered_json object = {{"tokens", std::vector<Index>(tokens.begin(), tokens.end())}};
      for (const Pointer& pointer : table) object["pointers"].push_back(to_json(pointer));
      fmt::print("{}\n", object.dump());
    } else {
      print(tokens, table, begin, state.options.task);
    }
    return kDone;
  });
}

}  // namespace

void add_inspect(CLI::App& app, int& exit_code) {
  CLI::App& command = *app.add_subcommand("inspect", "Show where each head of a run looks while it answers");
  auto flags = std::make_shared<InspectFlags>();
  command.add_option("run", flags->run, "Run folder")->required()->type_name("RUN");
  command.add_option("--prompt", flags->prompt, "Symbols of the question; the separator is added")->required();
  command.add_option("--threads", flags->threads, "Threads to use")->capture_default_str();
  command.add_flag("--json", flags->json, "Print one JSON object");
  command.footer("Example: heedful inspect runs/copy --prompt \"17 3 0 12 7 9\"");
  command.callback([flags, &exit_code] { exit_code = run(*flags); });
}

}  // namespace heedful::cli
