#include "heedful/kernels/sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "heedful/kernels/test_support.h"

namespace heedful {
namespace {

// The order is part of the contract: written out here once more, in another way.
TEST(Sum, AddsOnSixteenLanesAndAFixedTree) {
  testing_support::Inputs inputs(1);
  for (Index n = 0; n < 100; ++n) {
    std::vector<float> terms;
    for (Index i = 0; i < n; ++i) terms.push_back(static_cast<float>(inputs.number(1e3)));
    std::vector<float> lanes(16, 0.0f);
    for (std::size_t i = 0; i < terms.size(); ++i) lanes[i % 16] += terms[i];
    while (lanes.size() > 1) {
      const std::size_t half = lanes.size() / 2;
      for (std::size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
      lanes.resize(half);
    }
    const float sum = internal::sum(n, [&](Index i) { return terms[static_cast<std::size_t>(i)]; });
    EXPECT_EQ(testing_support::bits(sum), testing_support::bits(lanes[0])) << n;
  }
}

TEST(Sum, ErrorIsBoundedByTheLengthOfALane) {
  testing_support::Inputs inputs(2);
  for (const Index n : {1, 15, 16, 17, 1000, 100000}) {
    std::vector<float> terms;
    double exact = 0, absolute = 0;
    for (Index i = 0; i < n; ++i) {
      terms.push_back(static_cast<float>(inputs.number() + 0.5));
      exact += static_cast<double>(terms.back());
      absolute += std::abs(static_cast<double>(terms.back()));
    }
    const float sum = internal::sum(n, [&](Index i) { return terms[static_cast<std::size_t>(i)]; });
    EXPECT_NEAR(sum, exact, (static_cast<double>(n) / 16 + 5) * 0x1p-24 * 1.01 * absolute) << n;
  }
}

}  // namespace
}  // namespace heedful
