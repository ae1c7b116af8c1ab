// Attention over several chunks of keys and blocks of queries. What a short sequence can show is tested elsewhere.
#include "heedful/attention/attention.h"

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
AttentionResults<T> run_fused(const AttentionCase<T>& c, const Context& context = Context()) {
  AttentionResults<T> results(c.shape, c.bias.extents());
  attention_forward<T>(context, results.outputs(), c.inputs(), c.options());
  attention_backward<T>(context, results.gradients(c.bias.data() != nullptr), c.dout, c.inputs(),
                        {.out = results.out, .row_max = results.row_max, .row_sum = results.row_sum}, c.options());
  return results;
}

TYPED_TEST(Fused, AgreesWithTheReferenceOverSeveralChunks) {
  double largest = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    Random random(seed);
    const AttentionCase<TypeParam> c = long_case<TypeParam>(random);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, c.description));
    const AttentionResults<double> reference = run_reference(c);
    const WorstError worst = worst_error(run_fused(c), reference, rounding_bounds(c, reference));
    ASSERT_LE(worst.ratio, 1) << worst.where;
    largest = std::max(largest, worst.ratio);
  }
  std::cout << "largest error " << largest << " of its bound\n";
}

// With 64 threads the chunks of keys are shared out, with 2 the blocks of queries.
TYPED_TEST(Fused, ThreadsAndInstructionSetsChangeNoBit) {
  const Context two(2), many(64);
  for (std::uint64_t seed = 100; seed < 108; ++seed) {
    Random random(seed);
    const AttentionCase<TypeParam> c = long_case<TypeParam>(random);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, c.description));
    const AttentionResults<TypeParam> alone = run_fused(c);
    ASSERT_EQ(first_difference(alone, run_fused(c, two)), "");
    ASSERT_EQ(first_difference(alone, run_fused(c, many)), "");
    for_each_target([&](const char* target) {
      if (std::string(target) == "SCALAR" || std::string(target) == "EMU128") return;  // below, for it is slow
      EXPECT_EQ(first_difference(alone, run_fused(c)), "") << target;
    });
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

TYPED_TEST(Fused, TheFallbackGivesTheSameBits) {
  Random random(7);
  CaseFeatures features;
  AttentionCase<TypeParam> c = long_case<TypeParam>(random, features);
  while (c.shape.B * c.shape.H * c.shape.Tq * c.shape.Tk > 300'000) c = long_case<TypeParam>(random, features);
  const AttentionResults<TypeParam> best = run_fused(c);
  for_each_target([&](const char* target) { EXPECT_EQ(first_difference(best, run_fused(c)), "") << target; });
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
  c.dout = Tensor<TypeParam, 4>({B, H, Tq, E});
  fill_normal(random, c.q, 2), fill_normal(random, c.k), fill_normal(random, c.v);
  c.settings.causal = true;
  for (const Index window : {0, 300}) {
    c.settings.window = window;
    const AttentionResults<TypeParam> whole = run_fused(c);
    for (Index position = 0; position < kLength; position += position < 3 * kPanel ? 1 : 17) {
      AttentionOptions<TypeParam> options = c.options();
      options.alignment = Alignment::bottom_right;
      Tensor<TypeParam, 4> out({B, H, Index{1}, E});
      const AttentionInputs<TypeParam> inputs{.q = c.inputs().q.slice(2, position, position + 1),
                                              .k = c.inputs().k.slice(2, 0, position + 1),
                                              .v = c.inputs().v.slice(2, 0, position + 1)};
      for (const Context* context : {&one, &many}) {
        attention_forward<TypeParam>(*context, {.out = out}, inputs, options);
        for (Index b = 0; b < B; ++b) {
          for (Index h = 0; h < H; ++h) {
            for (Index e = 0; e < E; ++e) ASSERT_EQ(out(b, h, 0, e), whole.out(b, h, position, e)) << position;
          }
        }
      }
    }
  }
}

// A few queries take several chunks at once where all of them see all of those; with 64 threads each chunk is alone.
TYPED_TEST(Fused, AFewQueriesOnManyKeysGiveTheBitsOfChunksAlone) {
  using T = TypeParam;
  const Context one(1), many(64);
  Random random(4);
  for (const Index Tk : {Index{700}, 3 * kChunk, 13 * kChunk, 14 * kChunk + 40}) {
    for (const Index Tq : {1, 2, 5}) {
      AttentionCase<T> c;
      c.shape = {.B = 2, .Tq = Tq, .Tk = Tk, .H = 4, .G = 2, .D = 5, .E = 18};
      c.q = Tensor<T, 4>({2, 4, Tq, 5}), c.k = Tensor<T, 4>({2, 2, Tk, 5}), c.v = Tensor<T, 4>({2, 2, Tk, 18});
      fill_normal(random, c.q, 2), fill_normal(random, c.k, 2), fill_normal(random, c.v);
      c.key_lengths = Tensor<Index, 1>({2});
      c.settings.alignment = Alignment::bottom_right;
      c.settings.empty_row = EmptyRow::zero;
      for (int trial = 0; trial < 6; ++trial) {
        c.key_lengths(0) = trial % 2 == 0 ? Tk : random.integer(0, Tk + 1), c.key_lengths(1) = random.integer(0, Tk);
        c.settings.causal = trial % 3 > 0;
        c.settings.window = trial < 4 ? 0 : 1 + random.integer(0, Tk);
        SCOPED_TRACE(fmt::format("Tk {} Tq {} lengths {} {} causal {} window {}", Tk, Tq, c.key_lengths(0),
                                 c.key_lengths(1), c.settings.causal, c.settings.window));
        AttentionResults<T> at_once(c.shape, {}), alone(c.shape, {});
        attention_forward<T>(one, at_once.outputs(), c.inputs(), c.options());
        attention_forward<T>(many, alone.outputs(), c.inputs(), c.options());
        ASSERT_EQ(first_difference(at_once, alone), "");
      }
    }
  }
}

// What is not finite is carried into the rows that see it and changes no bit of the others, though they share tiles.
TYPED_TEST(Fused, WhatIsNotFiniteStaysWhereItIsSeen) {
  using T = TypeParam;
  const T junk[] = {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity()};
  for (std::uint64_t seed = 200; seed < 208; ++seed) {
    Random random(seed);
    AttentionCase<T> c = long_case<T>(random);
    const auto& [B, Tq, Tk, H, G, D, E] = c.shape;
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, c.description));
    const AttentionResults<T> clean = run_fused(c);
    const AttentionMask<T> mask(c.shape, c.options());
    const Index group = H / G, j = random.integer(0, Tk), i = random.integer(0, Tq);
    const T value = junk[seed % 2];

    AttentionCase<T> key = c.copy();  // key j of head 0 of sequence 0
    (seed % 4 < 2 ? key.v(0, 0, j, 0) : key.k(0, 0, j, 0)) = value;
    const AttentionResults<T> with_key = run_fused(key);
    for (Index h = 0; h < group; ++h) {
      for (Index row = 0; row < Tq; ++row) {
        if (mask.sees(0, h, row, j)) continue;
        for (Index e = 0; e < E; ++e) ASSERT_EQ(with_key.out(0, h, row, e), clean.out(0, h, row, e)) << row;
        for (Index d = 0; d < D; ++d) ASSERT_EQ(with_key.dq(0, h, row, d), clean.dq(0, h, row, d)) << row;
      }
    }

    AttentionCase<T> query = c.copy();  // query i of head 0 of sequence 0
    (seed % 4 < 2 ? query.q(0, 0, i, 0) : query.dout(0, 0, i, 0)) = value;
    const AttentionResults<T> with_query = run_fused(query);
    for (Index row = 0; row < Tq; ++row) {
      if (row == i) continue;
      for (Index d = 0; d < D; ++d) ASSERT_EQ(with_query.dq(0, 0, row, d), clean.dq(0, 0, row, d)) << row;
    }
    for (Index n = 0; n < Tk; ++n) {
      if (mask.sees(0, 0, i, n)) continue;
      for (Index d = 0; d < D; ++d) ASSERT_EQ(with_query.dk(0, 0, n, d), clean.dk(0, 0, n, d)) << n;
      for (Index e = 0; e < E; ++e) ASSERT_EQ(with_query.dv(0, 0, n, e), clean.dv(0, 0, n, e)) << n;
    }
  }
}

}  // namespace
}  // namespace heedful
