#include "heedful/kernels/embedding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "heedful/core/error.h"
#include "heedful/kernels/matmul.h"
#include "heedful/kernels/test_support.h"

namespace heedful {
namespace {

using testing_support::bits;
using testing_support::Inputs;

template <class T>
class EmbeddingTest : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(EmbeddingTest, Types);

// The independent road: y = O·table with one-hot rows O, and dtable += Oᵀ·dy. A product with 1 is exact and one with
// 0 adds an exact 0, so the chains must agree bit for bit, repeated tokens and their order included.
TYPED_TEST(EmbeddingTest, IsTheProductWithOneHotRows) {
  using T = TypeParam;
  Inputs inputs(1);
  const auto table = inputs.tensor<T, 2>({7, 13}), dy = inputs.tensor<T, 2>({20, 13});
  std::vector<Index> tokens(20);
  Tensor<T, 2> one_hot({20, 7});
  for (Index n = 0; n < 20; ++n) one_hot(n, tokens[static_cast<std::size_t>(n)] = inputs.index(7)) = 1;
  Tensor<T, 2> y({20, 13}), expected({20, 13}), dtable({7, 13}), dexpected({7, 13});
  embedding_forward<T>(Context(), y, table, tokens);
  matmul<T>(Context(), expected, one_hot, table);
  embedding_backward<T>(Context(), dtable, dy, tokens);
  matmul<T>(Context(), dexpected, one_hot.view().transpose(), dy);
  for (Index i = 0; i < y.size(); ++i) EXPECT_EQ(y.data()[i], expected.data()[i]);
  for (Index i = 0; i < dtable.size(); ++i) EXPECT_EQ(dtable.data()[i], dexpected.data()[i]);

  const auto before = dtable.copy();  // and it adds
  embedding_backward<T>(Context(), dtable, dy, std::vector<Index>(20, 3));
  for (Index v = 0; v < 7; ++v) {
    for (Index c = 0; c < 13; ++c) EXPECT_EQ(dtable(v, c) == before(v, c), v != 3);
  }
}

TYPED_TEST(EmbeddingTest, ThreadsAndStridesChangeNoBit) {
  using T = TypeParam;
  Inputs inputs(2);
  const auto table = inputs.tensor<T, 2>({50, 96}), dy = inputs.tensor<T, 2>({3000, 96});
  std::vector<Index> tokens(3000);
  for (Index& token : tokens) token = inputs.index(50);
  Tensor<T, 2> y({3000, 96}), dtable({50, 96});
  embedding_forward<T>(Context(1), y, table, tokens);
  embedding_backward<T>(Context(1), dtable, dy, tokens);
  Tensor<T, 2> y3({96, 3000}), dtable3({96, 50});
  embedding_forward<T>(Context(3), y3.view().transpose(), table, tokens);
  embedding_backward<T>(Context(3), dtable3.view().transpose(), dy, tokens);
  for (Index c = 0; c < 96; ++c) {
    for (Index n = 0; n < 3000; ++n) ASSERT_EQ(bits(y(n, c)), bits(y3(c, n)));
    for (Index v = 0; v < 50; ++v) ASSERT_EQ(bits(dtable(v, c)), bits(dtable3(c, v)));
  }
}

TEST(Embedding, RefusesTokensOutsideTheTableBeforeWriting) {
  Tensor<double, 2> table({4, 2}), y({3, 2}), dy({3, 2});
  y.fill(7), dy.fill(1);
  for (const Index bad : {Index{-1}, Index{4}}) {
    const std::vector<Index> tokens{0, 1, bad};
    EXPECT_THROW(embedding_forward<double>(Context(), y, table, tokens), Error);
    EXPECT_THROW(embedding_backward<double>(Context(), table, dy, tokens), Error);
  }
  EXPECT_THROW(embedding_forward<double>(Context(), y, table, std::vector<Index>{0, 1}), Error);
  for (const double element : y) EXPECT_EQ(element, 7);
  for (const double element : table) EXPECT_EQ(element, 0);
}

}  // namespace
}  // namespace heedful
