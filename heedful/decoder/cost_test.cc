#include "heedful/decoder/cost.h"

#include <gtest/gtest.h>

#include "heedful/core/error.h"
#include "heedful/core/random.h"
#include "heedful/decoder/activations.h"
#include "heedful/decoder/decoder.h"
#include "heedful/decoder/parameters.h"

namespace heedful {
namespace {

DecoderConfig exercise2() {
  DecoderConfig config;
  config.width = 512;
  config.heads = config.kv_heads = 8;
  config.layers = 24;
  config.feed_forward = 2048;
  config.context = 8192;
  return config;
}

TEST(Cost, TheArticlesSecondExercise) {
  const DecoderCost cost = decoder_cost(exercise2(), 4, 2);
  EXPECT_EQ(cost.block_parameters, 3'152'384);
  EXPECT_EQ(cost.total_parameters, 75'657'216);
  EXPECT_EQ(cost.parameter_bytes, 151'314'432);
  EXPECT_EQ(cost.kv_cache_bytes, 1'610'612'736);

  DecoderConfig multi_query = exercise2();
  multi_query.kv_heads = 1;
  EXPECT_EQ(decoder_cost(multi_query, 4, 2).kv_cache_bytes, 1'610'612'736 / 8);
}

TEST(Cost, BlockIsTwelveSquaresAndThirteenWidths) {
  for (Index d : {64, 256, 512}) {
    DecoderConfig config;
    config.width = d;
    config.feed_forward = 4 * d;
    config.context = 16;
    EXPECT_EQ(decoder_cost(config, 1, 4).block_parameters, 12 * d * d + 13 * d);
  }
}

TEST(Cost, G14sScoreArray) {
  DecoderConfig config = exercise2();
  config.context = 1024;
  EXPECT_EQ(decoder_cost(config, 2, 4).score_bytes, Index{64} << 20);
  config.context = 2048;
  EXPECT_EQ(decoder_cost(config, 2, 4).score_bytes, Index{256} << 20);
}

// Random configs, so that every entry of the closed form is held against the tensors that are really there.
DecoderConfig drawn(Random& random) {
  const auto pick = [&](std::initializer_list<Index> from) {
    return *(from.begin() + random.integer(0, static_cast<Index>(from.size())));
  };
  DecoderConfig config;
  config.vocabulary = pick({1, 7, 21});
  config.context = pick({1, 5, 13});
  config.heads = pick({1, 2, 4});
  config.kv_heads = random.integer(0, 2) == 0 ? 1 : config.heads;
  config.width = config.heads * pick({2, 4, 6});
  config.layers = pick({1, 2, 3});
  config.feed_forward = pick({1, 5, 16});
  config.norm = random.integer(0, 2) == 0 ? Norm::layer : Norm::rms;
  config.norm_placement = random.integer(0, 2) == 0 ? NormPlacement::pre : NormPlacement::post;
  config.position = static_cast<Position>(random.integer(0, 5));
  config.activation = static_cast<FeedForward>(random.integer(0, 4));
  config.bias = random.integer(0, 2) == 0;
  config.output_bias = random.integer(0, 2) == 0;
  config.tied = random.integer(0, 2) == 0;
  return config;
}

TEST(Cost, ClosedFormsEqualTheInventory) {
  Random random(1);
  for (int trial = 0; trial < 300; ++trial) {
    const DecoderConfig config = drawn(random);
    EXPECT_EQ(decoder_cost(config, 1, 1).total_parameters, parameter_count(config)) << trial;
  }
}

template <class T>
Index elements(const NormActivations<T>& norm) {
  return norm.output.size() + norm.normalized.size() + norm.inverse.size();
}

TEST(Cost, ClosedFormsEqualTheActivations) {
  Random random(2);
  for (int trial = 0; trial < 100; ++trial) {
    const DecoderConfig config = drawn(random);
    Activations<float> a;
    a.prepare(config, 3, config.context, config.context);
    Index total = a.embedded.size() + a.logits.size() + elements(a.final_norm);
    for (const auto& b : a.blocks) {
      total += elements(b.attention_norm) + elements(b.feed_forward_norm);
      for (const auto* t : {&b.q, &b.k, &b.v, &b.heads, &b.middle, &b.gate, &b.up, &b.hidden, &b.output}) {
        if (t->data() != nullptr) total += t->size();
      }
      total += b.row_max.size() + b.row_sum.size();
    }
    EXPECT_EQ(decoder_cost(config, 3, 4).activation_bytes, 4 * total) << trial;
  }
}

TEST(Cost, CacheBytesAreThoseAllocated) {
  Random random(3);
  for (int trial = 0; trial < 100; ++trial) {
    const DecoderConfig config = drawn(random);
    const KvCacheShape shape{config.layers,      2, config.kv_heads, config.context, config.head_width(),
                             config.head_width()};
    // Keys lie in panels, the last of which may not be full.
    const Index unused =
        (shape.key_panels() * kPanel - config.context) * config.layers * 2 * config.kv_heads * config.head_width();
    EXPECT_EQ(decoder_cost(config, 2, 4).kv_cache_bytes, 4 * (KvCache<float>(shape).elements() - unused)) << trial;
  }
}

TEST(Cost, RefusesWhatDoesNotFit) {
  DecoderConfig config = exercise2();
  EXPECT_THROW(decoder_cost(config, 0, 4), Error);
  config.context = Index{1} << 28;
  EXPECT_THROW(decoder_cost(config, Index{1} << 20, 8), Error);
}

}  // namespace
}  // namespace heedful
