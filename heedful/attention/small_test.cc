// The path of small heads against the general one: the same bits, whatever a small head may be asked. Elsewhere the
// tests of attention meet the small path wherever their problems are small.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "heedful/attention/attention_test_case.h"
#include "heedful/attention/mask.h"
#include "heedful/attention/small_call.h"
#include "heedful/kernels/each_target.h"

namespace heedful {
namespace {

// What a small head may be asked.
CaseFeatures small_features(Index max_length, Index max_width) {
  CaseFeatures features = CaseFeatures::none();
  features.scale = features.alignment = features.causal = features.window = features.key_lengths = true;
  features.large_scores = features.degenerate_keys = true;
  features.max_length = max_length, features.max_width = max_width;
  return features;
}

// Both passes, with everything that the small path writes. Both are given the same statistics and the same output.
template <HeadPath kPath, class T>
AttentionResults<T> run_on(const AttentionCase<T>& c, const Context& context) {
  AttentionResults<T> results(c.shape, c.bias.extents());
  const AttentionOutputs<T> outputs{
      .out = results.out, .row_max = results.row_max, .row_sum = results.row_sum, .log_sum_exp = results.log_sum_exp};
  const AttentionSaved<T> saved{.out = results.out, .row_max = results.row_max, .row_sum = results.row_sum};
  if constexpr (kPath == HeadPath::fitting) {
    attention_forward<T>(context, outputs, c.inputs(), c.options());
    attention_backward<T>(context, results.gradients(false), c.dout, c.inputs(), saved, c.options());
  } else {
    attention_forward_on<kPath, T>(context, outputs, c.inputs(), c.options());
    attention_backward_on<kPath, T>(context, results.gradients(false), c.dout, c.inputs(), saved, c.options());
  }
  return results;
}

template <class T>
void expect_same(const AttentionCase<T>& c, const Context& context = Context()) {
  const AttentionInputs<T> inputs = c.inputs();
  const AttentionOptions<T> options = c.options();
  ASSERT_TRUE(is_small(FusedCall<T>(inputs, options)));
  AttentionResults<T> small = run_on<HeadPath::fitting>(c, context);
  AttentionResults<T> general = run_on<HeadPath::general>(c, context);
  // Which NaN an operation on NaNs gives is its operands' order, which compilers choose: all count as one.
  for (AttentionResults<T>* results : {&small, &general}) {
    const auto unite = [](auto& tensor) {
      for (T& x : tensor) x = std::isnan(x) ? std::numeric_limits<T>::quiet_NaN() : x;
    };
    unite(results->out), unite(results->row_max), unite(results->row_sum), unite(results->log_sum_exp);
    unite(results->dq), unite(results->dk), unite(results->dv);
  }
  ASSERT_EQ(first_difference(small, general), "");
}

template <class T>
class SmallAttention : public testing::Test {
 protected:
  static void for_cases(std::uint64_t count, const CaseFeatures& features,
                        const std::function<void(AttentionCase<T>&, Random&)>& check) {
    for_each_target([&](const char* target) {
      for (std::uint64_t seed = 0; seed < count; ++seed) {
        Random random(seed);
        AttentionCase<T> c = random_case<T>(random, features);
        SCOPED_TRACE(fmt::format("{} seed {}: {}", target, seed, c.description));
        check(c, random);
        if (testing::Test::HasFatalFailure()) return;
      }
    });
  }
  // `x` at random places of most of the tensors, or at all of them.
  static void scatter(AttentionCase<T>& c, Random& random, T x) {
    for (Tensor<T, 4>* tensor : {&c.q, &c.k, &c.v, &c.dout}) {
      if (random.integer(0, 2) == 0) continue;
      for (Index n = random.integer(0, 3); n >= 0; --n) tensor->data()[random.integer(0, tensor->size())] = x;
      if (random.integer(0, 4) == 0) tensor->fill(x);
    }
  }
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(SmallAttention, Types);

TYPED_TEST(SmallAttention, HasTheBitsOfTheGeneralPath) {
  using T = TypeParam;
  this->for_cases(300, small_features(kSmallLength, 19), [](AttentionCase<T>& c, Random&) { expect_same(c); });
}

TYPED_TEST(SmallAttention, WideHeadsToo) {
  using T = TypeParam;
  this->for_cases(60, small_features(kSmallLength, kSmallWidth),
                  [](AttentionCase<T>& c, Random&) { expect_same(c); });
}

TYPED_TEST(SmallAttention, OnSeveralThreads) {
  using T = TypeParam;
  const Context context(3);
  CaseFeatures features = small_features(kSmallLength, 9);
  this->for_cases(20, features, [&](AttentionCase<T>& c, Random& random) {
    c.shape.B = 30;  // more heads than one task takes
    for (Tensor<T, 4>* tensor : {&c.q, &c.k, &c.v, &c.dout}) {
      Extents<4> extents = tensor->extents();
      extents[0] = c.shape.B;
      *tensor = Tensor<T, 4>(extents);
      fill_normal(random, *tensor);
    }
    if (c.key_lengths.size() > 0) c.key_lengths = Tensor<Index, 1>({c.shape.B});
    for (Index& length : c.key_lengths) length = random.integer(0, c.shape.Tk + 1);
    if (c.query_offsets.size() > 0) c.query_offsets = Tensor<Index, 1>({c.shape.B});
    for (Index& offset : c.query_offsets) offset = random.integer(-2, c.shape.Tk + 1);
    expect_same(c, context);
  });
}

// NaN, ±∞ and numbers near the largest, where queries see them and where not.
TYPED_TEST(SmallAttention, CarriesWhatIsNotFinite) {
  using T = TypeParam;
  using Limits = std::numeric_limits<T>;
  this->for_cases(120, small_features(kSmallLength, 9), [this](AttentionCase<T>& c, Random& random) {
    for (const T x : {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity(), Limits::max() / 4, T{1e30F}}) {
      AttentionCase<T> changed = c.copy();
      this->scatter(changed, random, x);
      ASSERT_NO_FATAL_FAILURE(expect_same(changed)) << x;
    }
  });
}

// Zeros of both signs, and numbers whose products underflow to either.
TYPED_TEST(SmallAttention, KeepsTheSignsOfZeros) {
  using T = TypeParam;
  this->for_cases(100, small_features(kSmallLength, 9), [](AttentionCase<T>& c, Random& random) {
    const T tiny = std::numeric_limits<T>::min();
    const T values[] = {T{0}, -T{0}, tiny, -tiny, T{1}, -T{1}};
    for (Tensor<T, 4>* tensor : {&c.q, &c.k, &c.v, &c.dout}) {
      for (T& x : *tensor) x = values[random.integer(0, 6)];
    }
    expect_same(c);
  });
}

// Heads as the decoder lays them out, side by side in a row, and columns that do not follow one another.
TYPED_TEST(SmallAttention, ReadsAndWritesStridedViews) {
  using T = TypeParam;
  this->for_cases(60, small_features(kSmallLength, 19), [](AttentionCase<T>& c, Random& random) {
    const AttentionResults<T> expected = run_on<HeadPath::general>(c, Context());
    const bool columns_apart = random.integer(0, 2) == 1;
    const auto view_of = [columns_apart](Tensor<T, 4>& memory, const Extents<4>& e) {  // [B, T, heads, width(, 2)]
      memory = Tensor<T, 4>({e[0], e[2], e[1], (columns_apart ? 2 : 1) * e[3]});
      const Index step = columns_apart ? 2 : 1, head = e[3] * step, row = e[1] * head;
      return View<T, 4>(memory.data(), e, {e[2] * row, head, row, step});
    };
    const auto copied = [](const auto& to, const auto& from) {
      for (Index b = 0; b < to.extent(0); ++b) {
        for (Index h = 0; h < to.extent(1); ++h) {
          for (Index i = 0; i < to.extent(2); ++i) {
            for (Index d = 0; d < to.extent(3); ++d) to(b, h, i, d) = from(b, h, i, d);
          }
        }
      }
    };
    Tensor<T, 4> q, k, v, dout, out, dq, dk, dv;
    const auto input = [&](Tensor<T, 4>& memory, const Tensor<T, 4>& from) {
      const View<T, 4> view = view_of(memory, from.extents());
      copied(view, from);
      return View<const T, 4>(view);
    };
    const AttentionInputs<T> inputs{.q = input(q, c.q), .k = input(k, c.k), .v = input(v, c.v)};
    const View<T, 4> strided_out = view_of(out, expected.out.extents());
    AttentionResults<T> got(c.shape, c.bias.extents());
    Tensor<T, 4> statistics({2, c.shape.B, c.shape.Tq, c.shape.H});
    const auto of_heads = [&](Index n) { return statistics.view()[n].permute({0, 2, 1}); };
    const Context context;
    attention_forward<T>(context, {.out = strided_out, .row_max = of_heads(0), .row_sum = of_heads(1)}, inputs,
                         c.options());
    const AttentionGradients<T> gradients{.dq = view_of(dq, expected.dq.extents()),
                                          .dk = view_of(dk, expected.dk.extents()),
                                          .dv = view_of(dv, expected.dv.extents())};
    attention_backward<T>(context, gradients, input(dout, c.dout), inputs,
                          {.out = strided_out, .row_max = of_heads(0), .row_sum = of_heads(1)}, c.options());
    for (Index b = 0; b < c.shape.B; ++b) {
      for (Index h = 0; h < c.shape.H; ++h) {
        for (Index i = 0; i < c.shape.Tq; ++i) {
          got.row_max(b, h, i) = of_heads(0)(b, h, i), got.row_sum(b, h, i) = of_heads(1)(b, h, i);
        }
      }
    }
    copied(got.out.view(), strided_out), copied(got.dq.view(), gradients.dq);
    copied(got.dk.view(), gradients.dk), copied(got.dv.view(), gradients.dv);
    ASSERT_TRUE(same_bits(got.out, expected.out));
    ASSERT_TRUE(same_bits(got.row_max, expected.row_max) && same_bits(got.row_sum, expected.row_sum));
    ASSERT_TRUE(same_bits(got.dq, expected.dq));
    ASSERT_TRUE(same_bits(got.dk, expected.dk));
    ASSERT_TRUE(same_bits(got.dv, expected.dv));
  });
}

// The largest small head, and what is none: one more of each extent, and each feature that a small head may not have.
TEST(SmallHeads, AreSmall) {
  const auto small = [](const AttentionShape& s, const AttentionOptions<float>& options = {}) {
    const Tensor<float, 4> q({s.B, s.H, s.Tq, s.D}), k({s.B, s.G, s.Tk, s.D}), v({s.B, s.G, s.Tk, s.E});
    const AttentionInputs<float> inputs{.q = q, .k = k, .v = v};
    return is_small(FusedCall<float>(inputs, options));
  };
  const AttentionShape largest{
      .B = 1, .Tq = kSmallLength, .Tk = kSmallLength, .H = 4, .G = 2, .D = kSmallWidth, .E = kSmallWidth};
  EXPECT_TRUE(small(largest));
  for (Index AttentionShape::* extent :
       {&AttentionShape::Tq, &AttentionShape::Tk, &AttentionShape::D, &AttentionShape::E}) {
    AttentionShape larger = largest;
    ++(larger.*extent);
    EXPECT_FALSE(small(larger));
  }
  const Tensor<float, 4> bias({1, 1, largest.Tq, largest.Tk});
  const Tensor<double, 1> slopes({largest.H});
  const Tensor<Index, 2> documents({largest.B, largest.Tq});
  EXPECT_FALSE(small(largest, {.softcap = 1}));
  EXPECT_FALSE(small(largest, {.bias = bias}));
  EXPECT_FALSE(small(largest, {.alibi_slopes = slopes}));
  EXPECT_FALSE(small(largest, {.query_documents = documents, .key_documents = documents}));
}

}  // namespace
}  // namespace heedful
