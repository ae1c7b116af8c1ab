#include "heedful/lab/counterfactual.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace heedful {
namespace {

// Keys 0 and 1 have one value, so all weight may move between them and none to key 2: the furthest row puts it all on
// the lighter of the two, 0.6 away.
TEST(Counterfactual, FindsTheFurthestRowWhereItIsKnown) {
  Tensor<double, 1> p({3});
  p(0) = 0.6;
  p(1) = 0.1;
  p(2) = 0.3;
  Tensor<double, 2> v({3, 1});
  v(0, 0) = v(1, 0) = 2;
  v(2, 0) = -1;
  Random random(0);
  const auto row = furthest_row(p, v, random);
  EXPECT_NEAR(row[0], 0, 1e-12);
  EXPECT_NEAR(row[1], 0.7, 1e-12);
  EXPECT_NEAR(row[2], 0.3, 1e-12);
}

TEST(Counterfactual, KeepsTheOutputAndStaysADistribution) {
  Random random(3);
  for (const Index n : {1, 2, 5, 12}) {
    for (const Index width : {1, 3, 8}) {
      Tensor<double, 1> p({n});
      Tensor<double, 2> v({n, width});
      double total = 0;
      for (double& x : p) total += x = random.uniform() + 1e-3;
      for (double& x : p) x /= total;
      for (double& x : v) x = random.normal();
      const auto row = furthest_row(p, v, random);
      EXPECT_NEAR(std::accumulate(row.begin(), row.end(), 0.0), 1, 1e-10);
      double moved = 0;
      for (Index e = 0; e < width; ++e) {
        double change = 0;
        for (Index j = 0; j < n; ++j) change += (row[static_cast<std::size_t>(j)] - p(j)) * v(j, e);
        EXPECT_NEAR(change, 0, 1e-9);  // a handful of steps, each keeping the constraints to 1e-12 of values near 1
      }
      for (Index j = 0; j < n; ++j) {
        EXPECT_GE(row[static_cast<std::size_t>(j)], 0);
        moved += std::abs(row[static_cast<std::size_t>(j)] - p(j));
      }
      EXPECT_EQ(moved > 1e-6, n > width + 1) << n << " keys, width " << width;
    }
  }
}

}  // namespace
}  // namespace heedful
