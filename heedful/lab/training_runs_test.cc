#include "heedful/lab/training_runs.h"

#include <gtest/gtest.h>

#include <cmath>

namespace heedful {
namespace {

TrainOptions tiny() {
  TrainOptions options;
  options.task.length = 2;
  options.task.alphabet = 4;
  options.model.width = 8;
  options.model.heads = options.model.kv_heads = 2;
  options.model.layers = 1;
  options.model.feed_forward = 16;
  options.batch = 4;
  options.steps = 75;
  return options;
}

TEST(TrainingRuns, GiveTheSameBitsAloneInCompanyAndOnAnyThreads) {
  const Context one(1), three(3);
  const Lab alone(one), together(three);
  const auto runs = with_seeds(alone, tiny(), 4);
  const auto company = train_all(together, runs, {}, "");
  ASSERT_EQ(company.size(), 4U);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    EXPECT_EQ(runs[i].seed, i);
    const auto single = train_all(alone, std::span(runs).subspan(i, 1), {}, "");
    EXPECT_EQ(single[0].loss, company[i].loss);
    EXPECT_EQ(single[0].losses.y, company[i].losses.y);
    EXPECT_EQ(single[0].accuracy.token, company[i].accuracy.token);
    EXPECT_EQ(company[i].losses.x, (std::vector<double>{25, 50, 75}));
  }
  EXPECT_NE(company[0].loss, company[1].loss);
}

TEST(TrainingRuns, TheLabsSeedShiftsThemAll) {
  const Context context(1);
  EXPECT_EQ(with_seeds(Lab(context, {.full = false, .seed = 7, .corpus = {}}), tiny(), 2)[1].seed, 8U);
}

TEST(TrainingRuns, ATrainingThatBreaksOffIsNotANumberAndTheOthersGoOn) {
  const Context context(2);
  double last = 0;
  const Lab lab(context, {}, [&](double share, std::string_view) { last = share; });
  auto runs = with_seeds(lab, tiny(), 2);
  runs[0].adam.learning_rate = runs[0].adam.weight_decay = 9e5;  // each step multiplies weights by about −8e11
  const auto results = train_all(lab, runs, {0.25, 0.5}, "");
  EXPECT_TRUE(std::isnan(results[0].loss));
  EXPECT_TRUE(std::isfinite(results[1].loss));
  EXPECT_NEAR(last, 0.5, 1e-12);
}

TEST(TrainingRuns, AMeanCurveIsAsLongAsTheShortestRun) {
  std::vector<RunResult> results(2);
  results[0].losses = {"", {25, 50}, {4, 2}};
  results[1].losses = {"", {25}, {2}};
  const Curve curve = mean_curve("mean", results);
  EXPECT_EQ(curve.x, (std::vector<double>{25}));
  EXPECT_EQ(curve.y, (std::vector<double>{3}));
  EXPECT_TRUE(mean_curve("none", {}).x.empty());
}

TEST(TrainingRuns, AMeanIsShownWithItsInterval) {
  EXPECT_EQ(mean_text(std::vector<double>{0.5}), "0.500");
  EXPECT_EQ(mean_text(std::vector<double>{0.5, 0.5, 0.5}), "0.500 [0.500, 0.500]");
}

}  // namespace
}  // namespace heedful
