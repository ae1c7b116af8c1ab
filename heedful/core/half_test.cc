#include "heedful/core/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace heedful {
namespace {

// The value of a 16-bit float by its definition: (−1)^s · 1.f · 2^e, or 0.f · 2^(least e).
double by_definition(int bits, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = bits >> 15 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  }
  const int whole = exponent == 0 ? fraction : fraction + (1 << fraction_bits);
  return sign * std::ldexp(whole, std::max(exponent, 1) - bias - fraction_bits);
}

struct Format {
  const char* name;
  int exponent_bits;
  float (*widen)(std::uint16_t);
  std::uint16_t (*narrow)(float);
};

class HalfTest : public testing::TestWithParam<Format> {};
INSTANTIATE_TEST_SUITE_P(Formats, HalfTest,
                         testing::Values(Format{"half", 5, half_to_float, float_to_half},
                                         Format{"bfloat16", 8, bfloat16_to_float, float_to_bfloat16}),
                         [](const auto& format) { return format.param.name; });

TEST_P(HalfTest, EveryValueWidensToItsDefinitionAndComesBack) {
  const Format& format = GetParam();
  for (int bits = 0; bits < 1 << 16; ++bits) {
    const float wide = format.widen(static_cast<std::uint16_t>(bits));
    const double expected = by_definition(bits, format.exponent_bits);
    const std::uint16_t back = format.narrow(wide);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(wide)) << bits;
      ASSERT_TRUE(std::isnan(format.widen(back))) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(wide), expected) << bits;
      ASSERT_EQ(back, bits);
    }
    ASSERT_EQ(std::signbit(wide), bits >> 15 == 1) << bits;
  }
}

// Every float between two neighbours goes to the nearer, the one halfway to the even one; checked at the halfway
// point and one float to either side, for every pair of neighbours and both signs.
TEST_P(HalfTest, RoundsToNearestEven) {
  const Format& format = GetParam();
  const int infinity = ((1 << format.exponent_bits) - 1) << (15 - format.exponent_bits);
  for (int below = 0; below < infinity; ++below) {
    const int above = below + 1;
    // One step past the largest number stands where the next number would be, were there one.
    const double next = above < infinity ? by_definition(above, format.exponent_bits)
                                         : 2 * by_definition(below, format.exponent_bits) -
                                               by_definition(below - 1, format.exponent_bits);
    const auto halfway = static_cast<float>((by_definition(below, format.exponent_bits) + next) / 2);
    const int even = below % 2 == 0 ? below : above;
    for (int sign : {0, 0x8000}) {
      const auto narrowed = [&](float value) { return format.narrow(sign == 0 ? value : -value); };
      ASSERT_EQ(narrowed(halfway), even | sign) << below;
      ASSERT_EQ(narrowed(std::nextafter(halfway, 0.0f)), below | sign) << below;
      ASSERT_EQ(narrowed(std::nextafter(halfway, std::numeric_limits<float>::infinity())), above | sign) << below;
    }
  }
}

TEST_P(HalfTest, OverflowsToInfinityAndKeepsNan) {
  const Format& format = GetParam();
  const auto infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(format.widen(format.narrow(std::numeric_limits<float>::max())), infinity);
  EXPECT_EQ(format.widen(format.narrow(-infinity)), -infinity);
  // A NaN whose marks all lie in the bits that are cut off.
  EXPECT_TRUE(std::isnan(format.widen(format.narrow(std::bit_cast<float>(0x7F800001u)))));
  EXPECT_TRUE(std::isnan(format.widen(format.narrow(std::bit_cast<float>(0xFF800001u)))));
}

}  // namespace
}  // namespace heedful
