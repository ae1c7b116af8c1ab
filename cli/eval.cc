// heedful eval: how well a run answers fresh questions.
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/precision.h"
#include "cli/summary.h"
#include "heedful/training/checkpoint.h"

namespace heedful::cli {
namespace {

struct EvalFlags {
  std::string run;
  Index samples = kSamples;
  std::uint64_t seed = kSampleSeed;
  int threads = 1;
  bool json = false;
};

int run(const EvalFlags& flags) {
  const RunFolder folder(flags.run);
  folder.require_run();
  return with_precision(load_checkpoint_options(folder.checkpoint()).precision, [&]<class T>() {
    const TrainingState<T> state = load_checkpoint<T>(folder.checkpoint());
    const Accuracy accuracy =
        evaluate<T>(Context(flags.threads), state.decoder, state.options.task, flags.samples, flags.seed);
    print_summary(summary_of(state, accuracy, folder.seconds_at(state.step)), folder, flags.json);
    return kDone;
  });
}

}  // namespace

void add_eval(CLI::App& app, int& exit_code) {
  CLI::App& command = *app.add_subcommand("eval", "Measure a run's accuracy by generation");
  auto flags = std::make_shared<EvalFlags>();
  command.add_option("run", flags->run, "Run folder")->required()->type_name("RUN");
  command.add_option("--samples", flags->samples, "Questions to ask")->capture_default_str();
  command.add_option("--seed", flags->seed, "Of the questions")->check(check_seed)->capture_default_str();
  command.add_option("--threads", flags->threads, "Threads to use")->capture_default_str();
  command.add_flag("--json", flags->json, "Print one JSON object");
  command.footer("Example: heedful eval runs/copy --samples 1000");
  command.callback([flags, &exit_code] { exit_code = run(*flags); });
}

}  // namespace heedful::cli
