// What may not change a single bit of attention: what hidden places hold, what else is asked for, threads, the
// instruction set, the rest of the batch, padding, chunks, a cache, and how the views are laid out.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "heedful/attention/attention_error_bound.h"
#include "heedful/attention/attention_test_case.h"
#include "heedful/attention/kv_cache.h"
#include "heedful/attention/mask.h"
#include "heedful/kernels/each_target.h"

namespace heedful {
namespace {

template <class T>
class AttentionInvariance : public testing::Test {
 protected:
  // Calls check on random problems of every kind.
  static void for_cases(const std::function<void(const AttentionCase<T>&, Random&)>& check,
                        const CaseFeatures& features = {}) {
    for (std::uint64_t seed = 1000; seed < 1200; ++seed) {
      Random random(seed);
      const AttentionCase<T> c = random_case<T>(random, features);
      SCOPED_TRACE(fmt::format("seed {}: {}", seed, c.description));
      check(c, random);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(AttentionInvariance, Types);

// Overwrites the keys and values no query sees, the queries and upstream gradients that see no key, and the biases
// that something else hides.
template <class T>
void overwrite_hidden(AttentionCase<T>& c, T junk) {
  const auto& [B, Tq, Tk, H, G, D, E] = c.shape;
  AttentionOptions<T> without_bias = c.options();
  without_bias.bias = {};
  const AttentionMask<T> mask(c.shape, c.options()), other(c.shape, without_bias);
  Tensor<bool, 3> key_seen({B, G, Tk});
  Tensor<bool, 4> bias_read(c.bias.extents());
  for (Index b = 0; b < B; ++b) {
    for (Index h = 0; h < H; ++h) {
      for (Index i = 0; i < Tq; ++i) {
        bool sees_any = false;
        for (Index j = 0; j < Tk; ++j) {
          const bool sees = mask.sees(b, h, i, j);
          sees_any = sees_any || sees;
          if (sees) key_seen(b, c.shape.kv_head(h), j) = true;
          if (c.bias.size() > 0 && other.sees(b, h, i, j)) {
            bias_read(b % c.bias.extent(0), h % c.bias.extent(1), i, j) = true;
          }
        }
        if (sees_any) continue;
        for (Index d = 0; d < D; ++d) c.q(b, h, i, d) = junk;
        for (Index e = 0; e < E; ++e) c.dout(b, h, i, e) = junk;
      }
    }
  }
  for (Index b = 0; b < B; ++b) {
    for (Index g = 0; g < G; ++g) {
      for (Index j = 0; j < Tk; ++j) {
        if (key_seen(b, g, j)) continue;
        for (Index d = 0; d < D; ++d) c.k(b, g, j, d) = junk;
        for (Index e = 0; e < E; ++e) c.v(b, g, j, e) = junk;
      }
    }
  }
  for (Index n = 0; n < c.bias.size(); ++n) {
    if (!bias_read.data()[n]) c.bias.data()[n] = junk;
  }
}

TYPED_TEST(AttentionInvariance, WhatHiddenPlacesHold) {
  using T = TypeParam;
  this->for_cases([](const AttentionCase<T>& c, Random&) {
    const AttentionResults<T> before = run_attention(c);
    const AttentionResults<double> reference_before = run_reference(c);
    using Limits = std::numeric_limits<T>;
    for (const T junk : {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity(), T{1e30F}}) {
      AttentionCase<T> changed = c.copy();
      overwrite_hidden(changed, junk);
      ASSERT_EQ(first_difference(before, run_attention(changed)), "") << junk;
      ASSERT_EQ(first_difference(reference_before, run_reference(changed)), "") << junk;
    }
  });
}

// One query that skips every other key: between the keys it sees stand NaNs, so no vector of keys is free of them.
TYPED_TEST(AttentionInvariance, WhatStandsBetweenTheKeysOfOneQuery) {
  using T = TypeParam;
  for (const Index Tk : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65}) {
    Random random(static_cast<std::uint64_t>(Tk));
    AttentionCase<T> c;
    c.shape = {.B = 1, .Tq = 1, .Tk = Tk, .H = 2, .G = 1, .D = 5, .E = 7};
    c.q = Tensor<T, 4>({1, 2, 1, 5}), c.k = Tensor<T, 4>({1, 1, Tk, 5}), c.v = Tensor<T, 4>({1, 1, Tk, 7});
    c.dout = Tensor<T, 4>({1, 2, 1, 7}), c.keep = Tensor<bool, 4>({1, 1, 1, Tk});
    c.settings.alignment = Alignment::top_left;
    fill_normal(random, c.q), fill_normal(random, c.k), fill_normal(random, c.v), fill_normal(random, c.dout);
    for (Index j = 0; j < Tk; j += 2) c.keep(0, 0, 0, j) = true;
    const AttentionResults<T> before = run_attention(c);
    overwrite_hidden(c, std::numeric_limits<T>::quiet_NaN());
    ASSERT_EQ(first_difference(before, run_attention(c)), "") << Tk;
  }
}

TYPED_TEST(AttentionInvariance, WhatElseIsAskedFor) {
  using T = TypeParam;
  this->for_cases([](const AttentionCase<T>& c, Random&) {
    const AttentionResults<T> all = run_attention(c);
    AttentionResults<T> few(c.shape, c.bias.extents());
    attention_forward<T>(Context(), {.out = few.out}, c.inputs(), c.options());
    ASSERT_TRUE(same_bits(all.out, few.out));
    few.out.fill(T{7});
    attention_forward<T>(Context(), {.out = few.out, .row_max = few.row_max, .row_sum = few.row_sum}, c.inputs(),
                         c.options());
    ASSERT_TRUE(same_bits(all.out, few.out) && same_bits(all.row_max, few.row_max) &&
                same_bits(all.row_sum, few.row_sum));
    few.dq.fill(T{7}), few.dk.fill(T{7}), few.dv.fill(T{7});  // assigned, not added to
    attention_backward<T>(Context(), few.gradients(false), c.dout, c.inputs(),
                          {.out = few.out, .row_max = few.row_max, .row_sum = few.row_sum}, c.options());
    ASSERT_TRUE(same_bits(all.dq, few.dq) && same_bits(all.dk, few.dk) && same_bits(all.dv, few.dv));
  });
}

TYPED_TEST(AttentionInvariance, Threads) {
  using T = TypeParam;
  const Context contexts[] = {Context(2), Context(3), Context(4), Context(5), Context(8)};
  this->for_cases([&contexts](const AttentionCase<T>& c, Random&) {
    const AttentionResults<T> alone = run_attention(c);
    for (const Context& context : contexts) {
      ASSERT_EQ(first_difference(alone, run_attention(c, context)), "") << context.threads() << " threads";
    }
  });
}

// Which thread takes which piece of the work changes from one call to the next.
TYPED_TEST(AttentionInvariance, Repeating) {
  Random random(11);
  const AttentionCase<TypeParam> c = random_case<TypeParam>(random, {.max_length = 300});
  const Context context(4);
  const AttentionResults<TypeParam> first = run_attention(c, context);
  for (int call = 0; call < 100; ++call) ASSERT_EQ(first_difference(first, run_attention(c, context)), "") << call;
}

TYPED_TEST(AttentionInvariance, TheInstructionSet) {
  using T = TypeParam;
  this->for_cases([](const AttentionCase<T>& c, Random&) {
    const AttentionResults<T> best = run_attention(c);
    for_each_target([&](const char* target) { EXPECT_EQ(first_difference(best, run_attention(c)), "") << target; });
    if (testing::Test::HasFailure()) FAIL();
  });
}

// Part [begin, begin + count) of an axis; a tensor that is not given stays so, and an axis of extent 1 is shared.
template <class T, int Rank>
Tensor<T, Rank> part(const Tensor<T, Rank>& tensor, int axis, Index begin, Index count, bool shared = false) {
  if (tensor.data() == nullptr) return {};
  if (shared && tensor.extent(axis) == 1) return tensor.copy();
  Extents<Rank> extents = tensor.extents();
  extents[static_cast<std::size_t>(axis)] = count;
  Tensor<T, Rank> result(extents);
  Index outer = 1, inner = 1;
  for (int a = 0; a < axis; ++a) outer *= tensor.extent(a);
  for (int a = axis + 1; a < Rank; ++a) inner *= tensor.extent(a);
  for (Index o = 0; o < outer; ++o) {
    std::copy_n(tensor.data() + (o * tensor.extent(axis) + begin) * inner, count * inner,
                result.data() + o * count * inner);
  }
  return result;
}

TYPED_TEST(AttentionInvariance, TheRestOfTheBatch) {
  using T = TypeParam;
  this->for_cases([](const AttentionCase<T>& c, Random&) {
    const AttentionResults<T> together = run_attention(c);
    for (Index b = 0; b < c.shape.B; ++b) {
      AttentionCase<T> one = c.copy();
      one.shape.B = 1;
      one.q = part(c.q, 0, b, 1), one.k = part(c.k, 0, b, 1), one.v = part(c.v, 0, b, 1);
      one.dout = part(c.dout, 0, b, 1);
      one.bias = part(c.bias, 0, b, 1, true), one.keep = part(c.keep, 0, b, 1, true);
      one.query_offsets = part(c.query_offsets, 0, b, 1), one.key_lengths = part(c.key_lengths, 0, b, 1);
      one.query_documents = part(c.query_documents, 0, b, 1), one.key_documents = part(c.key_documents, 0, b, 1);
      const AttentionResults<T> alone = run_attention(one);
      ASSERT_TRUE(same_bits(part(together.out, 0, b, 1), alone.out)) << b;
      ASSERT_TRUE(same_bits(part(together.weights, 0, b, 1), alone.weights)) << b;
      ASSERT_TRUE(same_bits(part(together.log_sum_exp, 0, b, 1), alone.log_sum_exp)) << b;
      ASSERT_TRUE(same_bits(part(together.dq, 0, b, 1), alone.dq)) << b;
      ASSERT_TRUE(same_bits(part(together.dk, 0, b, 1), alone.dk)) << b;
      ASSERT_TRUE(same_bits(part(together.dv, 0, b, 1), alone.dv)) << b;
    }
  });
}

// More of an axis, filled with `value`.
template <class T, int Rank>
Tensor<T, Rank> extended(const Tensor<T, Rank>& tensor, int axis, Index more, T value) {
  if (tensor.data() == nullptr) return {};
  Extents<Rank> extents = tensor.extents();
  extents[static_cast<std::size_t>(axis)] += more;
  Tensor<T, Rank> result(extents);
  result.fill(value);
  Index outer = 1, inner = 1;
  for (int a = 0; a < axis; ++a) outer *= tensor.extent(a);
  for (int a = axis; a < Rank; ++a) inner *= tensor.extent(a);
  for (Index o = 0; o < outer; ++o) {
    std::copy_n(tensor.data() + o * inner, inner,
                result.data() +
                    o * (inner / std::max(Index{1}, tensor.extent(axis))) * extents[static_cast<std::size_t>(axis)]);
  }
  return result;
}

// Positions made explicit, so that they do not move when Tk grows.
template <class T>
void name_positions(AttentionCase<T>& c) {
  const Index offset = c.settings.alignment == Alignment::bottom_right ? c.shape.Tk - c.shape.Tq : 0;
  if (c.settings.alignment == Alignment::offsets) return;
  c.settings.alignment = Alignment::offsets;
  c.query_offsets = Tensor<Index, 1>({c.shape.B});
  c.query_offsets.fill(offset);
}

// Further keys behind the length, and further queries whose gradient is 0, hold NaN; nothing else changes.
TYPED_TEST(AttentionInvariance, PaddingToTheRight) {
  using T = TypeParam;
  this->for_cases([](const AttentionCase<T>& c, Random& random) {
    const AttentionResults<T> before = run_attention(c);
    const Index more_keys = 1 + random.integer(0, 20), more_queries = random.integer(0, 5);
    const T nan = std::numeric_limits<T>::quiet_NaN();
    AttentionCase<T> padded = c.copy();
    name_positions(padded);
    if (c.key_lengths.data() == nullptr) {
      padded.key_lengths = Tensor<Index, 1>({c.shape.B});
      padded.key_lengths.fill(c.shape.Tk);
    }
    padded.shape.Tk += more_keys, padded.shape.Tq += more_queries;
    padded.k = extended(c.k, 2, more_keys, nan), padded.v = extended(c.v, 2, more_keys, nan);
    padded.q = extended(c.q, 2, more_queries, T{1}), padded.dout = extended(c.dout, 2, more_queries, T{0});
    padded.bias = extended(extended(c.bias, 3, more_keys, nan), 2, more_queries, T{0});
    padded.keep = extended(extended(c.keep, 3, more_keys, true), 2, more_queries, true);
    padded.query_documents = extended(c.query_documents, 1, more_queries, Index{1});
    padded.key_documents = extended(c.key_documents, 1, more_keys, Index{1});
    const AttentionResults<T> after = run_attention(padded);
    const auto first_queries = [&c](const auto& tensor) { return part(tensor, 2, 0, c.shape.Tq); };
    ASSERT_TRUE(same_bits(before.out, first_queries(after.out)));
    ASSERT_TRUE(same_bits(before.weights, part(first_queries(after.weights), 3, 0, c.shape.Tk)));
    ASSERT_TRUE(same_bits(before.dq, first_queries(after.dq)));
    ASSERT_TRUE(same_bits(before.dk, part(after.dk, 2, 0, c.shape.Tk)));
    ASSERT_TRUE(same_bits(before.dv, part(after.dv, 2, 0, c.shape.Tk)));
  });
}

TYPED_TEST(AttentionInvariance, ChunksOfQueries) {
  using T = TypeParam;
  this->for_cases([](const AttentionCase<T>& c, Random& random) {
    const AttentionResults<T> whole = run_attention(c);
    for (Index begin = 0; begin < c.shape.Tq;) {
      const Index count = std::min<Index>(1 + random.integer(0, 5), c.shape.Tq - begin);
      AttentionCase<T> chunk = c.copy();
      name_positions(chunk);
      for (Index& offset : chunk.query_offsets) offset += begin;
      chunk.shape.Tq = count;
      chunk.q = part(c.q, 2, begin, count), chunk.dout = part(c.dout, 2, begin, count);
      chunk.bias = part(c.bias, 2, begin, count), chunk.keep = part(c.keep, 2, begin, count);
      chunk.query_documents = part(c.query_documents, 1, begin, count);
      const AttentionResults<T> results = run_attention(chunk);
      ASSERT_TRUE(same_bits(part(whole.out, 2, begin, count), results.out)) << begin;
      ASSERT_TRUE(same_bits(part(whole.weights, 2, begin, count), results.weights)) << begin;
      ASSERT_TRUE(same_bits(part(whole.dq, 2, begin, count), results.dq)) << begin;
      begin += count;
    }
  });
}

// Causal attention of T positions at once against prompt chunks and then single tokens, each against a cache.
TYPED_TEST(AttentionInvariance, ACache) {
  using T = TypeParam;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    AttentionCase<T> c;
    const Index length = 1 + random.integer(0, 70), B = 1 + random.integer(0, 2), G = 1 + random.integer(0, 2);
    c.shape = {.B = B,
               .Tq = length,
               .Tk = length,
               .H = G * (1 + random.integer(0, 3)),
               .G = G,
               .D = 1 + random.integer(0, 20),
               .E = 1 + random.integer(0, 20)};
    const auto& [B_, Tq, Tk, H, G_, D, E] = c.shape;
    c.q = Tensor<T, 4>({B, H, length, D}), c.k = Tensor<T, 4>({B, G, length, D});
    c.v = Tensor<T, 4>({B, G, length, E}), c.dout = Tensor<T, 4>({B, H, length, E});
    fill_normal(random, c.q, 3), fill_normal(random, c.k, 3), fill_normal(random, c.v);
    c.settings.causal = true;
    if (random.integer(0, 2) == 1) c.settings.window = 1 + random.integer(0, length);
    const AttentionResults<T> whole = run_attention(c);

    KvCache<T> cache({.layers = 1, .B = B, .G = G, .capacity = length, .D = D, .E = E});
    for (Index begin = 0; begin < length;) {
      const Index count = begin == 0 ? std::min<Index>(length, 1 + random.integer(0, 10)) : 1;
      cache.append(0, begin, part(c.k, 2, begin, count), part(c.v, 2, begin, count));
      const Tensor<T, 4> q = part(c.q, 2, begin, count);
      Tensor<T, 4> out({B, H, count, E});
      AttentionOptions<T> options = c.settings;
      options.alignment = Alignment::bottom_right;
      AttentionInputs<T> inputs{.q = q, .k = {}, .v = {}};
      cache.lend(inputs, 0);
      attention_forward<T>(Context(), {.out = out}, inputs, options);
      ASSERT_TRUE(same_bits(part(whole.out, 2, begin, count), out)) << "seed " << seed << ", position " << begin;
      begin += count;
    }
  }
}

// Heads next to each other in [B, T, H, D] or apart in [B, H, T, D]: only the strides differ.
TYPED_TEST(AttentionInvariance, TheLayoutOfTheViews) {
  using T = TypeParam;
  this->for_cases([](const AttentionCase<T>& c, Random&) {
    const auto merged = [](const Tensor<T, 4>& x) {  // [B, H, T, W] → memory [B, T, H, W]
      Tensor<T, 4> y({x.extent(0), x.extent(2), x.extent(1), x.extent(3)});
      const View<T, 4> apart = y.view().permute({0, 2, 1, 3});
      for (Index b = 0; b < x.extent(0); ++b) {
        for (Index h = 0; h < x.extent(1); ++h) {
          for (Index t = 0; t < x.extent(2); ++t) {
            for (Index w = 0; w < x.extent(3); ++w) apart(b, h, t, w) = x(b, h, t, w);
          }
        }
      }
      return y;
    };
    const auto apart = [](Tensor<T, 4>& x) { return x.view().permute({0, 2, 1, 3}); };
    const AttentionResults<T> before = run_attention(c);
    Tensor<T, 4> q = merged(c.q), k = merged(c.k), v = merged(c.v), dout = merged(c.dout);
    Tensor<T, 4> out = merged(before.out), dq = merged(before.dq), dk = merged(before.dk), dv = merged(before.dv);
    const AttentionInputs<T> inputs{.q = apart(q), .k = apart(k), .v = apart(v)};
    Tensor<T, 4> got_out(out.extents()), got_dq(dq.extents()), got_dk(dk.extents()), got_dv(dv.extents());
    attention_forward<T>(Context(), {.out = apart(got_out)}, inputs, c.options());
    attention_backward<T>(Context(), {.dq = apart(got_dq), .dk = apart(got_dk), .dv = apart(got_dv)}, apart(dout),
                          inputs, {.out = apart(got_out), .row_max = before.row_max, .row_sum = before.row_sum},
                          c.options());
    ASSERT_TRUE(same_bits(out, got_out) && same_bits(dq, got_dq) && same_bits(dk, got_dk) && same_bits(dv, got_dv));
  });
}

// Attention knows no order: permuted queries give the same rows elsewhere, bit for bit; permuted keys give
// the same sums in another order.
TYPED_TEST(AttentionInvariance, PermutationOfQueriesAndKeys) {
  using T = TypeParam;
  CaseFeatures features{.alibi = false, .causal = false, .window = false, .key_lengths = false, .documents = false};
  features.bias = features.keep = false;
  this->for_cases(
      [](const AttentionCase<T>& c, Random& random) {
        const AttentionResults<T> before = run_attention(c);
        const auto permuted = [](const Tensor<T, 4>& x, const std::vector<Index>& order) {
          Tensor<T, 4> y(x.extents());
          for (Index b = 0; b < x.extent(0); ++b) {
            for (Index h = 0; h < x.extent(1); ++h) {
              for (Index t = 0; t < x.extent(2); ++t) {
                for (Index w = 0; w < x.extent(3); ++w)
                  y(b, h, t, w) = x(b, h, order[static_cast<std::size_t>(t)], w);
              }
            }
          }
          return y;
        };
        AttentionCase<T> other = c.copy();
        const std::vector<Index> queries = random.permutation(c.shape.Tq), keys = random.permutation(c.shape.Tk);
        other.q = permuted(c.q, queries), other.dout = permuted(c.dout, queries);
        const AttentionResults<T> rows = run_attention(other);
        ASSERT_TRUE(same_bits(permuted(before.out, queries), rows.out));
        ASSERT_TRUE(same_bits(permuted(before.dq, queries), rows.dq));

        other.k = permuted(c.k, keys), other.v = permuted(c.v, keys);
        const AttentionResults<double> reference = run_reference(other);
        const AttentionResults<double> bounds = rounding_bounds(other, reference);
        const Tensor<T, 4> expected = permuted(before.out, queries);
        const AttentionResults<T> got = run_attention(other);
        for (Index n = 0; n < expected.size(); ++n) {  // each is within its bound of the exact result
          ASSERT_NEAR(expected.data()[n], got.out.data()[n], 2 * bounds.out.data()[n]);
        }
      },
      features);
}

}  // namespace
}  // namespace heedful
