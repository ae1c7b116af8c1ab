// Many trainings side by side, each on one thread: the same bits alone or in company.
#ifndef HEEDFUL_LAB_TRAINING_RUNS_H_
#define HEEDFUL_LAB_TRAINING_RUNS_H_

#include <span>
#include <string>
#include <vector>

#include "heedful/lab/lab.h"
#include "heedful/training/evaluate.h"
#include "heedful/training/options.h"

namespace heedful {

struct RunResult {
  double loss = 0;  // of the last step; NaN where the training broke off
  Accuracy accuracy;
  Curve losses;  // the mean of every kLossStride steps
  Decoder<float> decoder;
};

inline constexpr Index kLossStride = 25;
inline constexpr Index kQuestions = 500;             // the article's test set:
inline constexpr std::uint64_t kQuestionSeed = 999;  // 500 questions from seed 999

// Where in the experiment's progress the trainings lie.
struct ProgressSpan {
  double begin = 0, end = 1;
};

std::vector<RunResult> train_all(const Lab& lab, std::span<const TrainOptions> runs, const ProgressSpan& span,
                                 const std::string& what);

// The options of the article's runs, fitted to the task, for `seeds` seeds from the lab's on.
std::vector<TrainOptions> with_seeds(const Lab& lab, TrainOptions options, Index seeds);

// One figure of every result.
template <class Figure>
std::vector<double> collect(std::span<const RunResult> results, const Figure& figure) {
  std::vector<double> values;
  for (const RunResult& result : results) values.push_back(figure(result));
  return values;
}

// The mean of the runs' loss curves.
Curve mean_curve(std::string name, std::span<const RunResult> results);

// "0.993 [0.981, 1.000]", or the value alone where there is one run.
std::string mean_text(std::span<const double> values, int digits = 3);

}  // namespace heedful

#endif  // HEEDFUL_LAB_TRAINING_RUNS_H_
