#include "heedful/core/view.h"

#include <gtest/gtest.h>

#include <numeric>

#include "heedful/core/tensor.h"

namespace heedful {
namespace {

Tensor<int, 3> counted() {  // [2, 3, 4], element = its place in memory
  Tensor<int, 3> tensor({2, 3, 4});
  std::iota(tensor.begin(), tensor.end(), 0);
  return tensor;
}

TEST(View, IndexesRowMajor) {
  auto tensor = counted();
  const View<int, 3> view = tensor;
  EXPECT_EQ(view(1, 2, 3), 23);
  EXPECT_EQ(view[1](2, 3), 23);
  EXPECT_EQ(view[1][2][3], 23);
  EXPECT_EQ(view.size(), 24);
  EXPECT_TRUE(view.is_contiguous());
}

TEST(View, PermuteMovesNoNumber) {
  auto tensor = counted();
  const auto permuted = tensor.view().permute({2, 0, 1});  // [4, 2, 3]
  EXPECT_EQ(permuted.extents(), (Extents<3>{4, 2, 3}));
  EXPECT_EQ(&permuted(3, 1, 2), &tensor(1, 2, 3));
  EXPECT_FALSE(permuted.is_contiguous());
}

TEST(View, SliceKeepsStrides) {
  auto tensor = counted();
  const auto slice = tensor.view().slice(1, 1, 3);  // [2, 2, 4]
  EXPECT_EQ(slice.extents(), (Extents<3>{2, 2, 4}));
  EXPECT_EQ(slice(1, 0, 0), tensor(1, 1, 0));
  EXPECT_FALSE(slice.is_contiguous());
}

TEST(View, ReshapeOfASplitAxisIsTheSameMemory) {
  auto tensor = counted();
  const auto split = tensor.view().reshape<4>({2, 3, 2, 2});  // C = heads × width
  EXPECT_EQ(&split(1, 2, 1, 0), &tensor(1, 2, 2));
}

TEST(View, ShapeText) {
  EXPECT_EQ(fmt::format("{}", shape_text(Extents<3>{2, 0, 4})), "[2, 0, 4]");
}

}  // namespace
}  // namespace heedful
