#include "heedful/core/context.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "heedful/core/error.h"

namespace heedful {
namespace {

TEST(Context, CallsEveryIndexOnce) {
  for (int threads : {1, 2, 5}) {
    const Context context(threads);
    std::vector<int> calls(1000, 0);
    context.parallel_for(1000, [&](Index i) { ++calls[static_cast<std::size_t>(i)]; });
    for (int count : calls) EXPECT_EQ(count, 1);
  }
}

TEST(Context, PassesAnExceptionOn) {
  for (int threads : {1, 3}) {
    const Context context(threads);
    EXPECT_THROW(context.parallel_for(10, [](Index i) { require(i != 7, "test", "seven"); }), Error);
  }
}

TEST(Context, RunsMoreThreadsThanCoresWithoutAWord) {
  testing::internal::CaptureStderr();
  const Context two(2), eight(8);
  std::atomic<int> calls = 0;
  two.parallel_for(100, [&](Index) { eight.parallel_for(10, [&](Index) { ++calls; }); });
  EXPECT_EQ(calls, 1000);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Context, RefusesAnImpossibleThreadCount) {
  EXPECT_THROW(Context(0), Error);
  EXPECT_THROW(Context(-3), Error);
}

}  // namespace
}  // namespace heedful
