// Fused attention where it is at home: sequences of several chunks of keys and blocks of queries. What a short
// sequence can show is tested through attention_forward and attention_backward.
#include "heedful/attention/fused.h"

#include <gtest/gtest.h>

#include "heedful/attention/attention_error_bound.h"
#include "heedful/attention/attention_test_case.h"
#include "heedful/attention/fused_call.h"
#include "heedful/attention/mask.h"
#include "heedful/kernels/each_target.h"

namespace heedful {
namespace {

template <class T>
class Fused : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Fused, Types);

// One sequence of up to 3 chunks and 4 blocks, one feature in two on.
template <class T>
AttentionCase<T> long_case(Random& random, CaseFeatures features = {}) {
  features.max_length = 3 * kChunk + 40;
  AttentionCase<T> c = random_case<T>(random, features);
  while (c.shape.B * c.shape.H * c.shape.Tq * c.shape.Tk > 1'500'000 || c.shape.Tk < kChunk / 2) {
    c = random_case<T>(random, features);
  }
  return c;
}

template <class T>
AttentionResults<T> forward(const AttentionCase<T>& c, const Context& context = Context()) {
  AttentionResults<T> results(c.shape, c.bias.extents());
  fused_attention_forward<T>(context, results.outputs(), c.inputs(), c.options());
  return results;
}

TYPED_TEST(Fused, AgreesWithTheReferenceOverSeveralChunks) {
  double largest = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    Random random(seed);
    const AttentionCase<TypeParam> c = long_case<TypeParam>(random);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, c.description));
    const AttentionResults<double> reference = run_reference(c), bounds = rounding_bounds(c, reference);
    const AttentionResults<TypeParam> results = forward(c);
    for (Index n = 0; n < results.out.size(); ++n) {
      const double error = std::abs(static_cast<double>(results.out.data()[n]) - reference.out.data()[n]);
      ASSERT_LE(error, bounds.out.data()[n]) << n;
      if (error > 0) largest = std::max(largest, error / bounds.out.data()[n]);
    }
    for (Index n = 0; n < results.weights.size(); ++n) {
      ASSERT_NEAR(results.weights.data()[n], reference.weights.data()[n], bounds.weights.data()[n]) << n;
    }
  }
  std::cout << "largest error " << largest << " of its bound\n";
}

// 5 threads and fewer heads: the chunks are shared out. 2 threads: the blocks.
TYPED_TEST(Fused, ThreadsAndInstructionSetsChangeNoBit) {
  const Context two(2), many(64);
  for (std::uint64_t seed = 100; seed < 108; ++seed) {
    Random random(seed);
    const AttentionCase<TypeParam> c = long_case<TypeParam>(random);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, c.description));
    const AttentionResults<TypeParam> alone = forward(c);
    ASSERT_EQ(first_difference(alone, forward(c, two)), "");
    ASSERT_EQ(first_difference(alone, forward(c, many)), "");
    for_each_target([&](const char* target) {
      if (std::string(target) == "SCALAR" || std::string(target) == "EMU128") return;  // below, for it is slow
      EXPECT_EQ(first_difference(alone, forward(c)), "") << target;
    });
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

TYPED_TEST(Fused, TheFallbackGivesTheSameBits) {
  Random random(7);
  CaseFeatures features;
  AttentionCase<TypeParam> c = long_case<TypeParam>(random, features);
  while (c.shape.B * c.shape.H * c.shape.Tq * c.shape.Tk > 300'000) c = long_case<TypeParam>(random, features);
  const AttentionResults<TypeParam> best = forward(c);
  for_each_target([&](const char* target) { EXPECT_EQ(first_difference(best, forward(c)), "") << target; });
}

// Each position alone against a cache gives what the whole sequence gave, however the chunks are shared out.
TYPED_TEST(Fused, DecodingGivesTheRowsOfTheWhole) {
  const Context one(1), many(64);
  Random random(3);
  constexpr Index kLength = 2 * kChunk + 30;
  AttentionCase<TypeParam> c;
  c.shape = {.B = 2, .Tq = kLength, .Tk = kLength, .H = 6, .G = 2, .D = 24, .E = 20};
  const auto& [B, Tq, Tk, H, G, D, E] = c.shape;
  c.q = Tensor<TypeParam, 4>({B, H, Tq, D}), c.k = Tensor<TypeParam, 4>({B, G, Tk, D});
  c.v = Tensor<TypeParam, 4>({B, G, Tk, E});
  fill_normal(random, c.q, 2), fill_normal(random, c.k), fill_normal(random, c.v);
  c.settings.causal = true;
  for (const Index window : {0, 300}) {
    c.settings.window = window;
    const AttentionResults<TypeParam> whole = forward(c);
    for (Index position = 0; position < kLength; position += position < 3 * kPanel ? 1 : 17) {
      AttentionOptions<TypeParam> options = c.options();
      options.alignment = Alignment::bottom_right;
      Tensor<TypeParam, 4> out({B, H, Index{1}, E});
      const AttentionInputs<TypeParam> inputs{.q = c.inputs().q.slice(2, position, position + 1),
                                              .k = c.inputs().k.slice(2, 0, position + 1),
                                              .v = c.inputs().v.slice(2, 0, position + 1)};
      for (const Context* context : {&one, &many}) {
        fused_attention_forward<TypeParam>(*context, {.out = out}, inputs, options);
        for (Index b = 0; b < B; ++b) {
          for (Index h = 0; h < H; ++h) {
            for (Index e = 0; e < E; ++e) ASSERT_EQ(out(b, h, 0, e), whole.out(b, h, position, e)) << position;
          }
        }
      }
    }
  }
}

// A key or value that is not finite is carried into the rows that see it and changes no bit of the others, though
// they share tiles with them.
TYPED_TEST(Fused, WhatIsNotFiniteStaysInTheRowsThatSeeIt) {
  using T = TypeParam;
  const T nan = std::numeric_limits<T>::quiet_NaN(), infinity = std::numeric_limits<T>::infinity();
  for (std::uint64_t seed = 200; seed < 206; ++seed) {
    Random random(seed);
    AttentionCase<T> c = long_case<T>(random, {.softcap = false, .large_scores = false});
    const AttentionResults<T> clean = forward(c);
    const Index at = static_cast<Index>(random.integer(0, c.shape.Tk));
    (seed % 2 == 0 ? c.v(0, 0, at, 0) : c.k(0, 0, at, 0)) = seed % 3 == 0 ? infinity : nan;
    const AttentionResults<T> results = forward(c);
    const AttentionMask<T> mask(c.shape, c.options());
    for (Index h = 0; h < c.shape.H / c.shape.G; ++h) {
      for (Index i = 0; i < c.shape.Tq; ++i) {
        const bool sees = mask.sees(0, h, i, at);
        for (Index e = 0; e < c.shape.E; ++e) {
          if (sees) continue;
          ASSERT_EQ(results.out(0, h, i, e), clean.out(0, h, i, e)) << "seed " << seed << ", query " << i;
        }
        if (sees && seed % 2 == 0 && seed % 3 != 0) {
          ASSERT_TRUE(std::isnan(results.out(0, h, i, 0)));
        }
      }
    }
  }
}

}  // namespace
}  // namespace heedful
