#include "heedful/decoder/parameters.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace heedful {
namespace {

DecoderConfig article() {
  DecoderConfig config;
  config.vocabulary = 21;
  config.context = 13;
  return config;
}

TEST(Parameters, TheArticlesDecoderHas27253) {
  EXPECT_EQ(parameter_count(article()), 27253);
}

TEST(Parameters, InventoryCoversTheBufferOnce) {
  Index next = 0;
  std::set<std::string> names;
  for (const auto& entry : parameter_inventory(article())) {
    EXPECT_EQ(entry.offset, next);
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    next += entry.size();
  }
  EXPECT_EQ(next, parameter_count(article()));
}

TEST(Parameters, ViewsLieWhereTheInventorySays) {
  Tensor<float, 1> buffer({parameter_count(article())});
  const auto weights = bind_weights<float>(article(), buffer.data());
  for (const auto& entry : parameter_inventory(article())) {
    if (entry.name == "block.1.feed_forward.down.weight") {
      EXPECT_EQ(weights.blocks[1].down.weight.data(), buffer.data() + entry.offset);
      EXPECT_EQ(weights.blocks[1].down.weight.extents(), (Extents<2>{128, 32}));
    }
    if (entry.name == "final_norm.bias") {
      EXPECT_EQ(weights.final_norm.bias.data(), buffer.data() + entry.offset);
    }
  }
}

TEST(Parameters, TiedOutputIsTheEmbeddingTransposed) {
  DecoderConfig config = article();
  config.tied = true;
  Tensor<float, 1> buffer({parameter_count(config)});
  const auto weights = bind_weights<float>(config, buffer.data());
  EXPECT_EQ(&weights.unembedding.weight(5, 7), &weights.token_embedding(7, 5));
}

// An ablation of the position must change the position alone.
TEST(Parameters, WithoutPositionTheOtherTensorsDrawTheSameNumbers) {
  DecoderConfig none = article();
  none.position = Position::none;
  Random random(4), same(4);
  const auto with = initial_parameters<double>(article(), random);
  const auto without = initial_parameters<double>(none, same);
  const Index table = 13 * 32, embedding = 21 * 32;
  for (Index i = 0; i < embedding; ++i) ASSERT_EQ(with(i), without(i));
  for (Index i = embedding; i < without.size(); ++i) ASSERT_EQ(with(i + table), without(i)) << i;
}

}  // namespace
}  // namespace heedful
