// heedful gradcheck: the hand-written derivatives against two independent ones.
#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/command.h"
#include "cli/model_flags.h"
#include "cli/progress.h"
#include "heedful/core/error.h"
#include "heedful/inspection/gradient_check.h"
#include "heedful/training/task.h"
#include "heedful/training/trainer.h"

namespace heedful::cli {
namespace {

struct GradcheckFlags {
  ModelFlags model;
  Task task;
  Index batch = 3;
  std::string coordinates = "all";
  GradientCheckOptions options;
  int threads = 1;
  bool json = false;
};

Index parse_coordinates(const std::string& text) {
  if (text == "all") return 0;
  Index value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc() && end == text.data() + text.size() && value > 0, "flags",
          "--coordinates: expected all or a number from 1, got \"{}\"", text);
  return value;
}

void print(const GradientCheck& check, const GradientCheckOptions& options, bool json) {
  if (json) {
    const nlohmann::ordered_json object = {{"checked", check.checked},
                                           {"skipped", check.skipped},
                                           {"kinks", check.kinks},
                                           {"max_relative_deviation", check.max_relative_deviation},
                                           {"worst", check.worst},
                                           {"max_kink_deviation", check.max_kink_deviation},
                                           {"small_failures", check.small_failures},
                                           {"forward_mode_deviation", check.forward_mode_deviation},
                                           {"forward_mode_worst", check.forward_mode_worst},
                                           {"epsilon", options.epsilon},
                                           {"tolerance", options.tolerance},
                                           {"passed", check.passed}};
    fmt::print("{}\n", object.dump());
    return;
  }
  fmt::print("epsilon              {:.0e}, tolerance {:.0e}\n", options.epsilon, options.tolerance);
  fmt::print("checked              {} coordinates, largest relative deviation {:.2e}{}{}\n", check.checked,
             check.max_relative_deviation, check.worst.empty() ? "" : " at ", check.worst);
  fmt::print("skipped              {}: gradient too small to measure at this epsilon; {} of them off absolutely\n",
             check.skipped, check.small_failures);
  fmt::print(
      "kinks                {}: a ReLU changed side within the step; up to {:.2e} off, kept out of the verdict\n",
      check.kinks, check.max_kink_deviation);
  fmt::print("forward mode         {:.2e} at worst ({}), no step size involved\n", check.forward_mode_deviation,
             check.forward_mode_worst);
  fmt::print("verdict              {}\n", check.passed ? "passed" : "FAILED");
}

int run(GradcheckFlags& flags) {
  flags.options.coordinates = parse_coordinates(flags.coordinates);
  TrainOptions options;
  options.task = flags.task;
  options.batch = flags.batch;
  options.seed = flags.options.seed;
  options.precision = Precision::f64;
  apply(flags.model, options.model);
  validate(options.task);
  fit_model_to_task(options);
  TrainingState<double> state = new_training<double>(options);
  Batch<double> batch = make_batch<double>(options.task, options.batch);
  draw_batch(batch, options.task, state.random);
  const Context context(flags.threads);
  GradientCheck check;
  {
    ProgressLine progress("gradcheck", "coordinates");
    check = check_gradients(context, state.decoder, batch, flags.options,
                            [&](Index done, Index total) { progress.show(done, total); });
  }
  print(check, flags.options, flags.json);
  return check.passed ? kDone : kFailed;
}

}  // namespace

void add_gradcheck(CLI::App& app, int& exit_code) {
  CLI::App& command = *app.add_subcommand("gradcheck", "Check the hand-written gradients of a model");
  auto flags = std::make_shared<GradcheckFlags>();
  add_model_flags(command, flags->model);
  command.add_option("--length", flags->task.length, "Symbols in a question")->capture_default_str();
  command.add_option("--alphabet", flags->task.alphabet, "Symbols to draw from")->capture_default_str();
  command.add_option("--batch", flags->batch, "Sequences in the batch")->capture_default_str();
  command.add_option("--epsilon", flags->options.epsilon, "Step of the finite difference")->capture_default_str();
  command.add_option("--tolerance", flags->options.tolerance, "Largest relative deviation that passes")
      ->capture_default_str();
  command.add_option("--coordinates", flags->coordinates, "all, or how many to draw")->capture_default_str();
  command.add_option("--seed", flags->options.seed, "Of the model, the batch and the draw")->capture_default_str();
  command.add_option("--threads", flags->threads, "Threads to use")->capture_default_str();
  command.add_flag("--json", flags->json, "Print one JSON object");
  command.footer("Example: heedful gradcheck --norm post --coordinates 2000 --epsilon 1e-6");
  command.callback([flags, &exit_code] { exit_code = run(*flags); });
}

}  // namespace heedful::cli
