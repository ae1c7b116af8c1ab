// heedful eval: how well a run answers fresh questions.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/precision.h"
#include "cli/summary.h"
#include "cli/text_summary.h"
#include "heedful/core/error.h"
#include "heedful/training/checkpoint.h"

namespace heedful::cli {
namespace {

struct EvalFlags {
  std::string run;
  std::optional<Index> samples;
  std::optional<std::uint64_t> seed;
  std::optional<std::string> corpus;
  int threads = 1;
  bool best = false, json = false;
};

int run(const EvalFlags& flags) {
  const RunFolder folder(flags.run);
  const std::filesystem::path path = folder.chosen(flags.best);
  const TrainOptions options = load_checkpoint_options(path);
  return with_precision(options.precision, [&]<class T>() {
    const TrainingState<T> state = load_checkpoint<T>(path);
    const Context context(flags.threads);
    const double seconds = folder.seconds_at(state.step);
    if (options.corpus) {
      require(!flags.samples && !flags.seed, "flags", "--samples, --seed: a run on text asks no questions");
      const Corpus corpus = corpus_of(options, flags.corpus);
      print_text_summary(text_summary_of(context, state, corpus, seconds), report_on(corpus), folder, flags.json);
      return kDone;
    }
    require(!flags.corpus, "flags", "--corpus: the run is on a task");
    const Accuracy accuracy = evaluate<T>(context, state.decoder, options.task, flags.samples.value_or(kSamples),
                                          flags.seed.value_or(kSampleSeed));
    print_summary(summary_of(state, accuracy, seconds), folder, flags.json);
    return kDone;
  });
}

}  // namespace

void add_eval(CLI::App& app, int& exit_code) {
  CLI::App& command =
      *app.add_subcommand("eval", "Measure a run: accuracy by generation, or the score on held-out text");
  auto flags = std::make_shared<EvalFlags>();
  command.add_option("run", flags->run, "Run folder")->required()->type_name("RUN");
  command.add_option("--samples", flags->samples, fmt::format("Questions to ask [{}]", kSamples));
  command.add_option("--seed", flags->seed, fmt::format("Of the questions [{}]", kSampleSeed));
  command.add_option("--corpus", flags->corpus, "The text of the run, where it has moved")->type_name("FILE");
  command.add_flag("--best", flags->best, "The state with the best held-out score instead of the last");
  command.add_option("--threads", flags->threads, "Threads to use")->capture_default_str();
  command.add_flag("--json", flags->json, "Print one JSON object");
  command.footer("Example: heedful eval runs/copy --samples 1000");
  command.callback([flags, &exit_code] { exit_code = run(*flags); });
}

}  // namespace heedful::cli
