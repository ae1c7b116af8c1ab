#include "heedful/training/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace heedful {
namespace {

TEST(Schedule, TheDefaultChangesNoBit) {
  for (Index step : {1, 2, 1000}) EXPECT_EQ(learning_rate_at({}, 3e-3, step), 3e-3);
}

TEST(Schedule, RisesThenFallsAsACosineThenStays) {
  const Schedule schedule{.warmup = 4, .decay_steps = 24, .minimum_rate = 0.1};
  EXPECT_DOUBLE_EQ(learning_rate_at(schedule, 1, 1), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate_at(schedule, 1, 4), 0.8);
  EXPECT_DOUBLE_EQ(learning_rate_at(schedule, 1, 5), 1);                 // the peak
  EXPECT_DOUBLE_EQ(learning_rate_at(schedule, 1, 15), 0.1 + 0.9 * 0.5);  // half-way
  EXPECT_DOUBLE_EQ(learning_rate_at(schedule, 1, 10), 0.1 + 0.45 * (1 + std::sqrt(0.5)));
  EXPECT_DOUBLE_EQ(learning_rate_at(schedule, 1, 25), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate_at(schedule, 1, 1000), 0.1);
  for (Index step = 5; step < 25; ++step) {
    EXPECT_GT(learning_rate_at(schedule, 1, step), learning_rate_at(schedule, 1, step + 1));
  }
}

TEST(Schedule, WarmUpAlone) {
  const Schedule schedule{.warmup = 9};
  EXPECT_DOUBLE_EQ(learning_rate_at(schedule, 2, 1), 0.2);
  EXPECT_EQ(learning_rate_at(schedule, 2, 10), 2);
  EXPECT_EQ(learning_rate_at(schedule, 2, 10000), 2);
}

}  // namespace
}  // namespace heedful
