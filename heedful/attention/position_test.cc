#include "heedful/attention/position.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "heedful/core/error.h"

namespace heedful {
namespace {

TEST(SinusoidalPositions, FollowTheFormula) {
  for (const Index width : {1, 2, 7, 16}) {
    Tensor<double, 2> table({50, width});
    sinusoidal_positions<double>(table);
    for (Index p = 0; p < 50; ++p) {
      for (Index i = 0; 2 * i < width; ++i) {
        const double angle =
            static_cast<double>(p) / std::pow(10000, static_cast<double>(2 * i) / static_cast<double>(width));
        EXPECT_DOUBLE_EQ(table(p, 2 * i), std::sin(angle));
        if (2 * i + 1 < width) {
          EXPECT_DOUBLE_EQ(table(p, 2 * i + 1), std::cos(angle));
        }
      }
    }
  }
}

// Position p + k is a rotation of position p that does not depend on p: the reason for the choice.
TEST(SinusoidalPositions, ShiftIsALinearMap) {
  Tensor<double, 2> table({100, 2});
  sinusoidal_positions<double>(table);
  const double s = table(7, 0), c = table(7, 1);
  for (Index p = 0; p + 7 < 100; ++p) {  // angles below 100: 100 roundings of 1e-16 in sine and cosine
    EXPECT_NEAR(table(p + 7, 0), table(p, 0) * c + table(p, 1) * s, 2e-14);
    EXPECT_NEAR(table(p + 7, 1), table(p, 1) * c - table(p, 0) * s, 2e-14);
  }
}

TEST(SinusoidalPositions, AreRoundedOnceInFloat) {
  Tensor<double, 2> exact({300, 9});
  Tensor<float, 2> rounded({300, 9});
  sinusoidal_positions<double>(exact);
  sinusoidal_positions<float>(rounded);
  for (Index n = 0; n < exact.size(); ++n) EXPECT_EQ(rounded.data()[n], static_cast<float>(exact.data()[n]));
}

std::vector<double> slopes(Index heads) {
  const Tensor<double, 1> tensor = alibi_slopes(heads);
  return {tensor.begin(), tensor.end()};
}

TEST(AlibiSlopes, PowersOfTwo) {
  EXPECT_EQ(slopes(1), (std::vector<double>{0x1p-8}));
  EXPECT_EQ(slopes(2), (std::vector<double>{0x1p-4, 0x1p-8}));
  EXPECT_EQ(slopes(8), (std::vector<double>{0.5, 0.25, 0.125, 0x1p-4, 0x1p-5, 0x1p-6, 0x1p-7, 0x1p-8}));
}

TEST(AlibiSlopes, OtherNumbersTakeEveryOtherOfTheNextPower) {
  EXPECT_EQ(slopes(3), (std::vector<double>{0x1p-4, 0x1p-8, 0x1p-2}));
  EXPECT_EQ(slopes(6), (std::vector<double>{0x1p-2, 0x1p-4, 0x1p-6, 0x1p-8, 0x1p-1, 0x1p-3}));
  // 12 heads: the 8 of 8 heads, then numbers 1, 3, 5, 7 of 16 heads, whose exponents are halves.
  EXPECT_EQ(slopes(12)[7], 0x1p-8);
  for (Index n = 0; n < 4; ++n)
    EXPECT_DOUBLE_EQ(slopes(12)[static_cast<std::size_t>(8 + n)], std::pow(2, -0.5 - static_cast<double>(n)));
  EXPECT_THROW(alibi_slopes(0), Error);
}

}  // namespace
}  // namespace heedful
