#include "heedful/core/tensor.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

namespace heedful {
namespace {

TEST(Tensor, StartsAtZeroOnACacheLine) {
  Tensor<double, 2> tensor({3, 5});
  for (double value : tensor) EXPECT_EQ(value, 0);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data()) % kTensorAlignment, 0u);
}

TEST(Tensor, MoveTakesTheMemoryAndCopyDoesNot) {
  Tensor<double, 1> tensor({4});
  tensor(2) = 7;
  const double* data = tensor.data();
  Tensor<double, 1> copied = tensor.copy();
  Tensor<double, 1> moved = std::move(tensor);
  EXPECT_EQ(moved.data(), data);
  EXPECT_NE(copied.data(), data);
  EXPECT_EQ(copied(2), 7);
}

TEST(Tensor, RefusesSizesThatOverflow) {
  EXPECT_THROW((Tensor<double, 2>({Index{1} << 40, Index{1} << 40})), Error);
  EXPECT_THROW((Tensor<double, 1>({-1})), Error);
  EXPECT_THROW((Tensor<double, 3>({0, Index{1} << 40, Index{1} << 40})), Error);
  EXPECT_EQ((Tensor<double, 2>({0, Index{1} << 40}).size()), 0);
}

}  // namespace
}  // namespace heedful
