#include "heedful/lab/training_runs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "heedful/core/error.h"
#include "heedful/lab/statistics.h"
#include "heedful/training/trainer.h"

namespace heedful {
namespace {

class SharedProgress {
 public:
  SharedProgress(const Lab& lab, const ProgressSpan& span, Index total, const std::string& what)
      : lab_(lab), span_(span), total_(total), what_(what) {}

  void advance(Index steps) {
    const std::scoped_lock lock(mutex_);
    done_ += steps;
    const double share = static_cast<double>(done_) / static_cast<double>(total_);
    lab_.progress(span_.begin + (span_.end - span_.begin) * share, what_);
  }

 private:
  const Lab& lab_;
  ProgressSpan span_;
  Index total_, done_ = 0;
  std::string what_;
  std::mutex mutex_;
};

RunResult train_one(const TrainOptions& options, SharedProgress& progress) {
  const Context single(1);
  Trainer<float> trainer(new_training<float>(options), single);
  RunResult result;
  double sum = 0;
  try {
    while (trainer.state().step < options.steps) {
      sum += trainer.step();
      const Index step = trainer.state().step;
      if (step % kLossStride != 0) continue;
      result.losses.x.push_back(static_cast<double>(step));
      result.losses.y.push_back(sum / kLossStride);
      sum = 0;
      progress.advance(kLossStride);
    }
    result.loss = trainer.state().loss;
  } catch (const Error&) {  // the loss was no longer finite
    result.loss = std::numeric_limits<double>::quiet_NaN();
  }
  progress.advance(options.steps - std::ssize(result.losses.x) * kLossStride);
  result.decoder = {trainer.state().decoder.config, trainer.state().decoder.parameters.copy()};
  if (std::isfinite(result.loss)) {
    result.accuracy = evaluate<float>(single, result.decoder, options.task, kQuestions, kQuestionSeed);
  }
  return result;
}

}  // namespace

std::vector<RunResult> train_all(const Lab& lab, std::span<const TrainOptions> runs, const ProgressSpan& span,
                                 const std::string& what) {
  Index total = 0;
  for (const TrainOptions& options : runs) total += options.steps;
  SharedProgress progress(lab, span, total, what);
  std::vector<RunResult> results(runs.size());
  lab.context().parallel_for(std::ssize(runs), [&](Index i) {
    const auto at = static_cast<std::size_t>(i);
    results[at] = train_one(runs[at], progress);
  });
  return results;
}

std::vector<TrainOptions> with_seeds(const Lab& lab, TrainOptions options, Index seeds) {
  fit_model_to_task(options);
  std::vector<TrainOptions> runs;
  for (Index seed = 0; seed < seeds; ++seed) {
    options.seed = lab.seed() + static_cast<std::uint64_t>(seed);
    runs.push_back(options);
  }
  return runs;
}

Curve mean_curve(std::string name, std::span<const RunResult> results) {
  Curve curve{std::move(name), {}, {}};
  std::size_t points = std::numeric_limits<std::size_t>::max();
  for (const RunResult& result : results) points = std::min(points, result.losses.x.size());
  if (results.empty() || points == 0) return curve;
  curve.x.assign(results[0].losses.x.begin(), results[0].losses.x.begin() + static_cast<Index>(points));
  for (std::size_t i = 0; i < points; ++i) {
    curve.y.push_back(mean(collect(results, [i](const RunResult& result) { return result.losses.y[i]; })));
  }
  return curve;
}

std::string mean_text(std::span<const double> values, int digits) {
  std::string text = fmt::format("{:.{}f}", mean(values), digits);
  if (values.size() < 2) return text;
  const Interval interval = mean_interval(values);
  return text + fmt::format(" [{:.{}f}, {:.{}f}]", interval.low, digits, interval.high, digits);
}

}  // namespace heedful
