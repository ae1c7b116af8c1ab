#include "heedful/lab/lab.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "heedful/core/error.h"
#include "heedful/kernels/softmax.h"
#include "heedful/lab/small.h"
#include "heedful/report/claim.h"
#include "heedful/report/text.h"

namespace heedful {
namespace {

// What no training and no clock has a say in: every claim must hold, whatever the machine.
class Deterministic : public testing::TestWithParam<const char*> {};

TEST_P(Deterministic, EveryClaimHolds) {
  const Context context(2);
  const Report report = run_experiment(find_experiment(GetParam()), Lab(context));
  EXPECT_FALSE(report.claims.empty());
  for (const Claim& claim : report.claims) {
    EXPECT_EQ(claim.verdict, Verdict::holds) << claim.statement.text << ": " << claim.measured;
    EXPECT_TRUE(claim.statement.must_hold) << claim.statement.text;
  }
}

INSTANTIATE_TEST_SUITE_P(Lab, Deterministic,
                         testing::Values("attention", "masks", "heads", "positions", "parameters", "exercises"));
INSTANTIATE_TEST_SUITE_P(SlowLab, Deterministic, testing::Values("gradients"));

TEST(Lab, ThreadsChangeNoFigure) {
  const auto text = [](int threads) {
    const Context context(threads);
    return render_text(run_experiment(find_experiment("gradients"), Lab(context)));
  };
  EXPECT_EQ(text(1), text(3));
}

// nanoGPT's published character set-up for a CPU, on the text that it was published with.
TEST(Lab, DISABLED_NightlyTextReachesNanoGptsLoss) {
  const std::string corpus = HEEDFUL_GOLDENS "/corpora/tinyshakespeare.txt";
  if (!std::filesystem::exists(corpus)) GTEST_SKIP() << corpus << " is absent";
  const Context context(2);
  const Report report =
      run_experiment(find_experiment("text"), Lab(context, {.full = true, .seed = 0, .corpus = corpus}));
  Index judged = 0;
  for (const Claim& claim : report.claims) {
    EXPECT_FALSE(claim.failed()) << claim.statement.text << ": " << claim.measured;
    judged += claim.statement.source == "nanoGPT, README (1.88)";
  }
  EXPECT_EQ(judged, 1);
}

// A lab whose kernel makes the second trap's mistake: the article's figure is then not what is measured.
void measure_with_a_mistake(Report& report, const Lab& lab) {
  Random random(3);
  const auto scores = draw_normal<double, 2>(random, {5, 5});
  Tensor<double, 2> weights({5, 5});
  softmax_forward<double>(lab.context(), weights.view(), scores);
  double sum = 0;
  for (Index j = 0; j <= 1; ++j) sum += weights(1, j);
  report.claims.push_back(claim_printed({"row sum of the second query", "article"}, "1.000", sum));
}

TEST(Lab, AMistakeTurnsItsClaimToDiffersAndFailsTheReport) {
  const Context context(1);
  const Report report = run_experiment({"broken", "", measure_with_a_mistake, 1, 1}, Lab(context));
  ASSERT_EQ(report.claims.size(), 1U);
  EXPECT_EQ(report.claims[0].verdict, Verdict::differs);
  EXPECT_EQ(report.claims[0].measured, "0.031, off by -0.97");
  EXPECT_TRUE(report.failed());
}

TEST(Lab, AnUnknownExperimentIsRefusedByName) {
  EXPECT_THROW(find_experiment("nothing"), Error);
}

}  // namespace
}  // namespace heedful
