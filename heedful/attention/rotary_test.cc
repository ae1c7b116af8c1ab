#include "heedful/attention/rotary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "heedful/core/error.h"
#include "heedful/core/random.h"

namespace heedful {
namespace {

template <class T>
constexpr double kRounding = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;

template <class T>
Tensor<T, 4> normal(Random& random, const Extents<4>& extents) {
  Tensor<T, 4> x(extents);
  for (T& element : x) element = static_cast<T>(random.normal());
  return x;
}
Tensor<Index, 2> positions_from(Index start, Index time) {
  Tensor<Index, 2> positions({1, time});
  for (Index t = 0; t < time; ++t) positions(0, t) = start + t;
  return positions;
}

constexpr RotaryLayout kLayouts[] = {RotaryLayout::interleaved, RotaryLayout::half_split};

// Base 1 turns every pair by one radian a position; (1, 0) goes to (cos, sin).
TEST(RotaryNumbers, PairsTurnTogether) {
  const RotaryTable<double> table(3, 4, 1.0);
  const Tensor<Index, 2> positions = positions_from(2, 1);
  Tensor<double, 4> x({1, 1, 1, 5}), y({1, 1, 1, 5});
  x(0, 0, 0, 0) = 1, x(0, 0, 0, 4) = 9;
  rotary_forward<double>(y, x, positions, table, RotaryLayout::interleaved);
  EXPECT_DOUBLE_EQ(y(0, 0, 0, 0), std::cos(2.0));
  EXPECT_DOUBLE_EQ(y(0, 0, 0, 1), std::sin(2.0));
  EXPECT_EQ(y(0, 0, 0, 4), 9) << "beyond the rotary width nothing turns";
  rotary_forward<double>(y, x, positions, table, RotaryLayout::half_split);
  EXPECT_DOUBLE_EQ(y(0, 0, 0, 0), std::cos(2.0));
  EXPECT_EQ(y(0, 0, 0, 1), 0);
  EXPECT_DOUBLE_EQ(y(0, 0, 0, 2), std::sin(2.0));
}

TEST(RotaryNumbers, FrequenciesFallWithTheBase) {
  const RotaryTable<double> table(8, 6, 10000.0);
  const RotaryAngles<double> angles = table;
  for (Index p = 0; p < 8; ++p) {
    for (Index c = 0; c < 3; ++c) {
      const double angle = static_cast<double>(p) / std::pow(10000.0, static_cast<double>(2 * c) / 6);
      EXPECT_NEAR(angles.cos(p, c), std::cos(angle),
                  8 * 4 * kRounding<double>);  // the angle, below 8, to 4 roundings
      EXPECT_NEAR(angles.sin(p, c), std::sin(angle), 8 * 4 * kRounding<double>);
    }
  }
}

// q(m)·k(n) depends on m − n alone, up to the rounding of angles below 1000 and of the products.
TEST(RotaryProperty, ProductsDependOnTheDistance) {
  Random random(3);
  for (const RotaryLayout layout : kLayouts) {
    for (const Index width : {2, 4, 10, 16}) {
      const Index D = width + 3;
      const RotaryTable<double> table(1000, width, 10000.0);
      const Tensor<double, 4> q = normal<double>(random, {1, 1, 1, D}), k = normal<double>(random, {1, 1, 1, D});
      const auto product = [&](Index m, Index n) {
        Tensor<double, 4> turned_q(q.extents()), turned_k(k.extents());
        rotary_forward<double>(turned_q, q, positions_from(m, 1), table, layout);
        rotary_forward<double>(turned_k, k, positions_from(n, 1), table, layout);
        double sum = 0;
        for (Index d = 0; d < D; ++d) sum += turned_q(0, 0, 0, d) * turned_k(0, 0, 0, d);
        return sum;
      };
      double size = 0;
      for (Index d = 0; d < D; ++d) size += std::abs(q(0, 0, 0, d)) + std::abs(k(0, 0, 0, d));
      for (const Index shift : {1, 17, 700}) {
        const double tolerance = 4 * 1000 * kRounding<double> * size * size;
        EXPECT_NEAR(product(205, 200), product(205 + shift, 200 + shift), tolerance);
        EXPECT_NEAR(product(5, 40), product(5 + shift, 40 + shift), tolerance);
      }
      EXPECT_GT(std::abs(product(5, 0) - product(0, 5)), 1e-3) << "the sign of the distance counts";
    }
  }
}

// A rotation is linear and its transpose turns back: ⟨Rx, y⟩ = ⟨x, Rᵀy⟩, and Rᵀ(Rx) = x.
template <class T>
class RotaryTypes : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(RotaryTypes, Types);

TYPED_TEST(RotaryTypes, BackwardIsTheTranspose) {
  using T = TypeParam;
  Random random(5);
  for (const RotaryLayout layout : kLayouts) {
    for (const Index width : {2, 6, 8}) {
      const Extents<4> extents{2, 3, 5, 9};
      const RotaryTable<T> table(64, width, 500.0);
      Tensor<Index, 2> positions({2, 5});
      for (Index& position : positions) position = random.integer(0, 64);
      const Tensor<T, 4> x = normal<T>(random, extents), dy = normal<T>(random, extents);
      Tensor<T, 4> y(extents), dx(extents), back(extents);
      rotary_forward<T>(y, x, positions, table, layout);
      rotary_backward<T>(dx, dy, positions, table, layout);
      rotary_backward<T>(back, y, positions, table, layout);
      double left = 0, right = 0, size = 0;
      for (Index n = 0; n < x.size(); ++n) {
        left += static_cast<double>(y.data()[n]) * static_cast<double>(dy.data()[n]);
        right += static_cast<double>(x.data()[n]) * static_cast<double>(dx.data()[n]);
        size += 2 * std::abs(static_cast<double>(y.data()[n])) + 2 * std::abs(static_cast<double>(dx.data()[n]));
        // Two products and a sum each way, and cos² + sin² is 1 to 2 roundings: 8 roundings of numbers below 8.
        EXPECT_NEAR(back.data()[n], x.data()[n], 8 * 8 * kRounding<T>);
      }
      EXPECT_NEAR(left, right, 4 * 4 * kRounding<T> * size);  // 4 roundings of each product, numbers below 4
    }
  }
}

TYPED_TEST(RotaryTypes, InPlaceAndPositionsSharedByTheBatch) {
  using T = TypeParam;
  Random random(6);
  const RotaryTable<T> table(20, 4, 10000.0);
  for (const RotaryLayout layout : kLayouts) {
    Tensor<T, 4> x = normal<T>(random, {2, 2, 3, 4}), y(x.extents());
    Tensor<Index, 2> each({2, 3});
    for (Index b = 0; b < 2; ++b) {
      for (Index t = 0; t < 3; ++t) each(b, t) = 7 + t;
    }
    rotary_forward<T>(y, x, each, table, layout);
    rotary_forward<T>(x, x, positions_from(7, 3), table, layout);
    for (Index n = 0; n < x.size(); ++n) EXPECT_EQ(x.data()[n], y.data()[n]);
  }
}

TEST(RotaryBorder, RefusesWhatDoesNotFit) {
  EXPECT_THROW(RotaryTable<double>(4, 3, 10000.0), Error);
  EXPECT_THROW(RotaryTable<double>(4, 0, 10000.0), Error);
  EXPECT_THROW(RotaryTable<double>(-1, 4, 10000.0), Error);
  EXPECT_THROW(RotaryTable<double>(4, 4, 0.0), Error);
  EXPECT_THROW(RotaryTable<double>(4, 4, std::nan("")), Error);
  const RotaryTable<double> table(4, 4, 10000.0);
  Tensor<double, 4> x({1, 1, 2, 4}), narrow({1, 1, 2, 3}), other({1, 1, 3, 4});
  const auto turn = [&table](View<double, 4> to, const Tensor<double, 4>& from, const Tensor<Index, 2>& positions) {
    rotary_forward<double>(to, from, positions, table, RotaryLayout::interleaved);
  };
  EXPECT_NO_THROW(turn(x, x, positions_from(2, 2)));
  EXPECT_THROW(turn(x, x, positions_from(3, 2)), Error) << "position 4 is not in the table";
  EXPECT_THROW(turn(x, x, positions_from(-1, 2)), Error);
  EXPECT_THROW(turn(x, x, positions_from(0, 3)), Error);
  EXPECT_THROW(turn(narrow, narrow, positions_from(0, 2)), Error);
  EXPECT_THROW(turn(other, x, positions_from(0, 2)), Error);
}

}  // namespace
}  // namespace heedful
