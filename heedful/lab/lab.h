// The lab: every measurement of the two source documents as an experiment that says what was expected, what was
// measured and whether it holds. docs/lab.md lists each claim with the file that measures it.
//
//     Lab lab(context, {.full = false}, show_progress);
//     for (const Experiment& experiment : experiments()) Report report = run_experiment(experiment, lab);
//
// An experiment's figures depend on the seed and on `full`, never on the thread count: independent trainings run side
// by side, each on one thread, and give the same bits alone or in company. (Times and memory are measured, not
// computed, and differ from run to run.)
#ifndef HEEDFUL_LAB_LAB_H_
#define HEEDFUL_LAB_LAB_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "heedful/core/context.h"
#include "heedful/decoder/decoder.h"
#include "heedful/report/report.h"

namespace heedful {

struct LabOptions {
  bool full = false;       // all seeds and steps; otherwise few enough for a minute and a half on two cores
  std::uint64_t seed = 0;  // added to the seeds of trainings whose figures are judged as distributions
  std::string corpus;      // a file of real text to learn from as well; empty for none
};

// Called with the share of the experiment that is done, and what is being done.
using LabProgress = std::function<void(double share, std::string_view what)>;

class Lab {
 public:
  explicit Lab(const Context& context, const LabOptions& options = {}, LabProgress progress = {})
      : context_(context), options_(options), progress_(std::move(progress)) {}

  const Context& context() const { return context_; }
  bool full() const { return options_.full; }
  std::uint64_t seed() const { return options_.seed; }
  const std::string& corpus() const { return options_.corpus; }
  void progress(double share, std::string_view what) const {
    if (progress_) progress_(share, what);
  }

  // The article's copy model: length 6, seed 0, 1500 steps, in double. Trained when first asked for.
  const Decoder<double>& copy_model() const;

 private:
  const Context& context_;
  LabOptions options_;
  LabProgress progress_;
  mutable std::optional<Decoder<double>> copy_model_;
};

struct Experiment {
  std::string_view name, title;
  void (*run)(Report& report, const Lab& lab);
  double quick_seconds, full_seconds;  // about how long on two cores: for the time left alone
};

std::span<const Experiment> experiments();

// Throws Error naming the experiments there are.
const Experiment& find_experiment(std::string_view name);

Report run_experiment(const Experiment& experiment, const Lab& lab);

}  // namespace heedful

#endif  // HEEDFUL_LAB_LAB_H_
