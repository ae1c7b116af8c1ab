#include "heedful/lab/lab.h"

#include <gtest/gtest.h>

#include "heedful/core/error.h"
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
INSTANTIATE_TEST_SUITE_P(SlowLab, Deterministic, testing::Values("scaling", "gradients"));

TEST(Lab, ThreadsChangeNoFigure) {
  const auto text = [](int threads) {
    const Context context(threads);
    return render_text(run_experiment(find_experiment("gradients"), Lab(context)));
  };
  EXPECT_EQ(text(1), text(3));
}

TEST(Lab, AnUnknownExperimentIsRefusedByName) {
  EXPECT_THROW(find_experiment("nothing"), Error);
}

}  // namespace
}  // namespace heedful
