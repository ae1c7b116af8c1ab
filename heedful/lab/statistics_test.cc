#include "heedful/lab/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace heedful {
namespace {

using Values = std::vector<double>;

TEST(Statistics, OfWorkedExamples) {
  const Values values{1, 2, 3, 4};
  EXPECT_DOUBLE_EQ(mean(values), 2.5);
  EXPECT_NEAR(deviation(values), std::sqrt(5.0 / 3), 1e-15);
  // Half-width t(3) · s / √4 = 3.182 · 1.29099 / 2.
  EXPECT_NEAR(mean_interval(values).high, 2.5 + 3.182 * std::sqrt(5.0 / 3) / 2, 1e-12);
  EXPECT_NEAR(prediction_interval(values, 1).high, 2.5 + 3.182 * std::sqrt(5.0 / 3 * 1.25), 1e-12);
  EXPECT_NEAR(fitted_slope(Values{0, 1, 2}, Values{1, 3, 5}), 2, 1e-15);
  EXPECT_NEAR(student_quantile(60), 2.000, 1e-3);  // tabulated
  EXPECT_NEAR(student_quantile(31), 2.040, 1e-3);
}

TEST(Statistics, RanksShareTies) {
  EXPECT_NEAR(rank_correlation(Values{1, 2, 3}, Values{10, 200, 3000}), 1, 1e-15);
  EXPECT_NEAR(rank_correlation(Values{1, 2, 3}, Values{3, 2, 1}), -1, 1e-15);
  // Ranks 0, 1.5, 1.5, 3 against 0, 1, 2, 3: 4.5 / √(4.5 · 5).
  EXPECT_NEAR(rank_correlation(Values{1, 2, 2, 3}, Values{1, 2, 3, 4}), 4.5 / std::sqrt(4.5 * 5), 1e-15);
  EXPECT_TRUE(std::isnan(rank_correlation(Values{1, 1}, Values{1, 2})));
}

TEST(Statistics, DifferencesAreToldFromChance) {
  EXPECT_GT(difference_interval(Values{5, 6, 7}, Values{1, 2, 3}).low, 0);
  EXPECT_TRUE(difference_interval(Values{1, 2, 9}, Values{1, 2, 3}).contains(0));
  EXPECT_FALSE(std::isfinite(mean_interval(Values{1}).high));
}

}  // namespace
}  // namespace heedful
