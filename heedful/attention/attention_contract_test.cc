// The promises of attention.h that a number or two can show, in every path: what the masks mean, that hiding comes
// last, what an empty row gives, which head reads which, and which calls are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "heedful/attention/attention_test_case.h"
#include "heedful/core/error.h"

namespace heedful {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// B sequences, H heads on G, random numbers.
AttentionCase<double> plain_case(const AttentionShape& shape) {
  Random random(11);
  const auto& [B, Tq, Tk, H, G, D, E] = shape;
  AttentionCase<double> c;
  c.shape = shape;
  c.q = Tensor<double, 4>({B, H, Tq, D}), c.k = Tensor<double, 4>({B, G, Tk, D});
  c.v = Tensor<double, 4>({B, G, Tk, E}), c.dout = Tensor<double, 4>({B, H, Tq, E});
  fill_normal(random, c.q), fill_normal(random, c.k), fill_normal(random, c.v), fill_normal(random, c.dout);
  return c;
}

// Which keys have a weight, as rows of 0 and 1, from the working path; the reference must say the same.
std::vector<std::string> visible(const AttentionCase<double>& c, Index b = 0, Index h = 0) {
  const AttentionResults<double> results = run_attention(c), reference = run_reference(c);
  std::vector<std::string> rows;
  for (Index i = 0; i < c.shape.Tq; ++i) {
    std::string row;
    for (Index j = 0; j < c.shape.Tk; ++j) {
      const bool seen = results.weights(b, h, i, j) > 0;
      EXPECT_EQ(seen, reference.weights(b, h, i, j) > 0) << "the paths disagree at " << i << ", " << j;
      EXPECT_EQ(seen, results.scores(b, h, i, j) != -kInfinity);
      row += seen ? '1' : '0';
    }
    rows.push_back(row);
  }
  return rows;
}
using Rows = std::vector<std::string>;

TEST(Masks, CausalByAlignment) {
  AttentionCase<double> c = plain_case({.B = 1, .Tq = 2, .Tk = 4, .H = 1, .G = 1, .D = 3, .E = 2});
  c.settings.causal = true;
  c.settings.alignment = Alignment::top_left;
  EXPECT_EQ(visible(c), (Rows{"1000", "1100"}));
  c.settings.alignment = Alignment::bottom_right;
  EXPECT_EQ(visible(c), (Rows{"1110", "1111"}));
  c.settings.alignment = Alignment::offsets;
  c.query_offsets = Tensor<Index, 1>({1}), c.query_offsets(0) = 1;
  EXPECT_EQ(visible(c), (Rows{"1100", "1110"}));
}

// The matrices the article prints: causal, and causal with a sequence of 3 tokens in a batch of 5.
TEST(Masks, CausalAndPaddingCombineWithAnd) {
  AttentionCase<double> c = plain_case({.B = 2, .Tq = 5, .Tk = 5, .H = 1, .G = 1, .D = 3, .E = 2});
  c.settings.causal = true;
  c.key_lengths = Tensor<Index, 1>({2}), c.key_lengths(0) = 5, c.key_lengths(1) = 3;
  EXPECT_EQ(visible(c, 0), (Rows{"10000", "11000", "11100", "11110", "11111"}));
  EXPECT_EQ(visible(c, 1), (Rows{"10000", "11000", "11100", "11100", "11100"}));
}

TEST(Masks, WindowCountsTheCurrentToken) {
  AttentionCase<double> c = plain_case({.B = 1, .Tq = 4, .Tk = 4, .H = 1, .G = 1, .D = 3, .E = 2});
  c.settings.window = 1;
  EXPECT_EQ(visible(c), (Rows{"1000", "0100", "0010", "0001"}));
  c.settings.window = 2;
  EXPECT_EQ(visible(c), (Rows{"1100", "1110", "0111", "0011"}));
  c.settings.causal = true;
  EXPECT_EQ(visible(c), (Rows{"1000", "1100", "0110", "0011"}));
  c.settings.window = std::numeric_limits<Index>::max();
  EXPECT_EQ(visible(c), (Rows{"1000", "1100", "1110", "1111"}));
}

TEST(Masks, KeepTrueMeansMayLook) {
  AttentionCase<double> c = plain_case({.B = 1, .Tq = 2, .Tk = 3, .H = 2, .G = 1, .D = 3, .E = 2});
  c.keep = Tensor<bool, 4>({1, 2, 2, 3});
  c.keep(0, 0, 0, 1) = c.keep(0, 0, 1, 0) = c.keep(0, 0, 1, 2) = true;
  for (Index i = 0; i < 2; ++i) c.keep(0, 1, i, i) = true;
  EXPECT_EQ(visible(c, 0, 0), (Rows{"010", "101"}));
  EXPECT_EQ(visible(c, 0, 1), (Rows{"100", "010"}));
}

TEST(Masks, DocumentsDoNotSeeOneAnother) {
  AttentionCase<double> c = plain_case({.B = 1, .Tq = 4, .Tk = 4, .H = 1, .G = 1, .D = 3, .E = 2});
  c.query_documents = Tensor<Index, 2>({1, 4}), c.key_documents = Tensor<Index, 2>({1, 4});
  for (Index t = 0; t < 4; ++t) c.query_documents(0, t) = c.key_documents(0, t) = t < 1 ? -7 : 3;
  EXPECT_EQ(visible(c), (Rows{"1000", "0111", "0111", "0111"}));
  c.settings.causal = true;
  EXPECT_EQ(visible(c), (Rows{"1000", "0100", "0110", "0111"}));
}

TEST(Masks, BiasOfMinusInfinityHides) {
  AttentionCase<double> c = plain_case({.B = 1, .Tq = 2, .Tk = 3, .H = 1, .G = 1, .D = 3, .E = 2});
  c.bias = Tensor<double, 4>({1, 1, 2, 3});
  c.bias(0, 0, 0, 2) = c.bias(0, 0, 1, 0) = -kInfinity;
  EXPECT_EQ(visible(c), (Rows{"110", "011"}));
}

// Hiding comes after the softcap, which would turn −∞ into a score of −softcap and let the key back in.
TEST(Masks, HidingComesAfterTheSoftcap) {
  AttentionCase<double> c = plain_case({.B = 1, .Tq = 2, .Tk = 2, .H = 1, .G = 1, .D = 3, .E = 2});
  c.settings.causal = true;
  c.settings.softcap = 0.5;
  c.bias = Tensor<double, 4>({1, 1, 2, 2}), c.bias(0, 0, 1, 0) = -kInfinity;
  EXPECT_EQ(visible(c), (Rows{"10", "01"}));
  EXPECT_EQ(run_attention(c).weights(0, 0, 1, 1), 1);
}

// No constant stands for "hidden": visible scores of −1e30 still take all the weight.
TEST(Masks, HiddenIsNotAVeryNegativeScore) {
  AttentionCase<double> c = plain_case({.B = 1, .Tq = 3, .Tk = 3, .H = 1, .G = 1, .D = 1, .E = 1});
  c.settings.causal = true;
  c.q.fill(1e15), c.k.fill(-1e15);
  EXPECT_EQ(visible(c), (Rows{"100", "110", "111"}));
  EXPECT_EQ(run_attention(c).weights(0, 0, 1, 0), 0.5);
}

TEST(EmptyRows, AreRefusedUnlessZeroIsAskedFor) {
  AttentionCase<double> c = plain_case({.B = 2, .Tq = 3, .Tk = 3, .H = 2, .G = 2, .D = 3, .E = 2});
  c.keep = Tensor<bool, 4>({2, 2, 3, 3});
  c.keep.fill(true);
  for (Index j = 0; j < 3; ++j) c.keep(1, 1, 2, j) = false;
  const auto message = [](auto call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  AttentionResults<double> r(c.shape, {});
  const AttentionSaved<double> saved{.out = r.out, .row_max = r.row_max, .row_sum = r.row_sum};
  const std::vector<std::string> messages{
      message([&] { attention_forward<double>(Context(), r.outputs(), c.inputs(), c.options()); }), message([&] {
        attention_backward<double>(Context(2), r.gradients(false), c.dout, c.inputs(), saved, c.options());
      }),
      message([&] { attention_reference_forward<double>(r.outputs(), c.inputs(), c.options()); }),
      message([&] { attention_reference_backward<double>(r.gradients(false), c.dout, c.inputs(), c.options()); })};
  EXPECT_THAT(messages, testing::Each(testing::HasSubstr("got none for query 2 of head 1 in sequence 1")));

  c.settings.empty_row = EmptyRow::zero;
  for (Index e = 0; e < 2; ++e) c.dout(1, 1, 2, e) = kNan;
  for (const AttentionResults<double>& results : {run_attention(c), run_reference(c)}) {
    EXPECT_EQ(results.log_sum_exp(1, 1, 2), -kInfinity);
    EXPECT_EQ(results.row_max(1, 1, 2), -kInfinity);
    EXPECT_EQ(results.row_sum(1, 1, 2), 0);
    for (Index e = 0; e < 2; ++e) EXPECT_EQ(results.out(1, 1, 2, e), 0);
    for (Index d = 0; d < 3; ++d) EXPECT_EQ(results.dq(1, 1, 2, d), 0);
    for (Index j = 0; j < 3; ++j) EXPECT_EQ(results.weights(1, 1, 2, j), 0);
    for (double x : results.dk) EXPECT_TRUE(std::isfinite(x));
    for (double x : results.dv) EXPECT_TRUE(std::isfinite(x));
  }
}

// Where the sequences differ, every one is looked at: by its key length, and by where its queries stand.
TEST(EmptyRows, AreFoundInLaterSequences) {
  const auto refused = [](AttentionCase<double>& c) {
    AttentionResults<double> r(c.shape, {});
    EXPECT_THROW(attention_forward<double>(Context(), {.out = r.out}, c.inputs(), c.options()), Error);
  };
  AttentionCase<double> shorter = plain_case({.B = 2, .Tq = 3, .Tk = 3, .H = 1, .G = 1, .D = 3, .E = 2});
  shorter.key_lengths = Tensor<Index, 1>({2});
  shorter.key_lengths(0) = 3;
  refused(shorter);
  AttentionCase<double> before = plain_case(shorter.shape);
  before.query_offsets = Tensor<Index, 1>({2});
  before.query_offsets(1) = -1;
  before.settings.alignment = Alignment::offsets;
  before.settings.causal = true;
  refused(before);
}

TEST(EmptyRows, WithoutAnyKey) {
  AttentionCase<double> c = plain_case({.B = 1, .Tq = 2, .Tk = 0, .H = 1, .G = 1, .D = 3, .E = 2});
  EXPECT_THROW(run_attention(c), Error);
  c.settings.empty_row = EmptyRow::zero;
  const AttentionResults<double> results = run_attention(c);
  for (double x : results.out) EXPECT_EQ(x, 0);
  for (double x : results.dq) EXPECT_EQ(x, 0);
}

TEST(Heads, NothingToDoIsDone) {
  run_attention(plain_case({.B = 0, .Tq = 2, .Tk = 3, .H = 1, .G = 1, .D = 3, .E = 2}));
  run_attention(plain_case({.B = 2, .Tq = 0, .Tk = 3, .H = 1, .G = 1, .D = 3, .E = 2}));
}

// The values of key-value head g are all g, so the output of query head h names the head it read. A merge of heads
// without the transpose, or key-value heads dealt out in turn, gives other numbers.
TEST(Heads, QueryHeadReadsTheKeyValueHeadOfItsGroup) {
  for (const bool reference : {false, true}) {
    AttentionCase<double> c = plain_case({.B = 2, .Tq = 3, .Tk = 3, .H = 6, .G = 2, .D = 3, .E = 2});
    for (Index b = 0; b < 2; ++b) {
      for (Index j = 0; j < 3; ++j) {
        for (Index e = 0; e < 2; ++e) c.v(b, 0, j, e) = 0, c.v(b, 1, j, e) = 1;
      }
    }
    Tensor<double, 4> merged({2, 3, 6, 2});  // memory [B, T, H, E]
    const View<double, 4> out = merged.view().permute({0, 2, 1, 3});
    if (reference) {
      attention_reference_forward<double>({.out = out}, c.inputs(), c.options());
    } else {
      attention_forward<double>(Context(), {.out = out}, c.inputs(), c.options());
    }
    const View<double, 3> rows = merged.view().reshape<3>({2, 3, 12});  // [B, T, H·E]
    for (Index b = 0; b < 2; ++b) {
      for (Index t = 0; t < 3; ++t) {
        // The weights of three keys sum to 1 within their three roundings.
        for (Index c12 = 0; c12 < 12; ++c12) EXPECT_NEAR(rows(b, t, c12), c12 < 6 ? 0 : 1, 4e-16);
      }
    }
  }
}

// A visible number that is not finite is carried along; nothing stops and no neighbour is touched.
TEST(NotFinite, IsCarriedIntoItsRowsAndNoOthers) {
  AttentionCase<double> c = plain_case({.B = 1, .Tq = 4, .Tk = 4, .H = 1, .G = 1, .D = 3, .E = 2});
  c.settings.causal = true;
  const AttentionResults<double> clean = run_attention(c);
  c.k(0, 0, 2, 1) = kNan;
  const AttentionResults<double> results = run_attention(c);
  for (Index i = 0; i < 4; ++i) {
    for (Index e = 0; e < 2; ++e) {
      if (i < 2) {
        EXPECT_EQ(results.out(0, 0, i, e), clean.out(0, 0, i, e));
      } else {
        EXPECT_TRUE(std::isnan(results.out(0, 0, i, e)));
      }
    }
    EXPECT_EQ(std::isnan(results.row_sum(0, 0, i)), i >= 2);
  }
}

class Border : public testing::Test {
 protected:
  // What both paths say; they must say the same.
  std::string refused() const {
    using heedful::refused;
    Tensor<double, 4> out({2, 4, 3, 5});
    const std::string working =
        refused([&] { attention_forward<double>(Context(), {.out = out}, c.inputs(), c.options()); });
    EXPECT_EQ(refused([&] { attention_reference_forward<double>({.out = out}, c.inputs(), c.options()); }), working);
    return working;
  }

  AttentionCase<double> c = plain_case({.B = 2, .Tq = 3, .Tk = 6, .H = 4, .G = 2, .D = 3, .E = 5});
};

using testing::HasSubstr;

TEST_F(Border, AcceptsWhatFits) {
  EXPECT_EQ(refused(), "accepted");
}
TEST_F(Border, RefusesShapesThatDoNotFit) {
  const AttentionCase<double> good = c.copy();
  c.k = Tensor<double, 4>({2, 2, 6, 4});
  EXPECT_THAT(refused(), HasSubstr("k: expected [B, G, Tk, D] = [2, 2, 6, 3], got [2, 2, 6, 4]"));
  c = good.copy(), c.k = Tensor<double, 4>({1, 2, 6, 3});
  EXPECT_THAT(refused(), HasSubstr("k: expected [B, G, Tk, D] = [2, 2, 6, 3], got [1, 2, 6, 3]"));
  c = good.copy(), c.v = Tensor<double, 4>({2, 2, 5, 5});
  EXPECT_THAT(refused(), HasSubstr("v: expected [B, G, Tk, E] = [2, 2, 6, 5], got [2, 2, 5, 5]"));
  c = good.copy(), c.v = Tensor<double, 4>({2, 1, 6, 5});
  EXPECT_THAT(refused(), HasSubstr("v: expected"));
  c = good.copy(), c.k = Tensor<double, 4>({2, 3, 6, 3}), c.v = Tensor<double, 4>({2, 3, 6, 5});
  EXPECT_THAT(refused(),
              HasSubstr("heads: expected the query heads to be a multiple of the key-value heads, got 4 and 3"));
  c = good.copy(), c.k = Tensor<double, 4>({2, 0, 6, 3}), c.v = Tensor<double, 4>({2, 0, 6, 5});
  EXPECT_THAT(refused(), HasSubstr("at least 1, got 0 and 5"));
  c = good.copy(), c.q = Tensor<double, 4>({2, 4, 3, 0}), c.k = Tensor<double, 4>({2, 2, 6, 0});
  EXPECT_THAT(refused(), HasSubstr("at least 1, got 4 and 0"));
  c = good.copy(), c.q = {};
  EXPECT_THAT(refused(), HasSubstr("expected"));
}
TEST_F(Border, RefusesNumbersThatMeanNothing) {
  c.settings.scale = kNan;
  EXPECT_THAT(refused(), HasSubstr("scale: expected a finite number of this type, got nan"));
  c.settings.scale = kInfinity;
  EXPECT_THAT(refused(), HasSubstr("scale: expected a finite number of this type, got inf"));
  c.settings.scale = 0;  // every score 0 is a fair wish
  EXPECT_EQ(refused(), "accepted");
  for (const double softcap : {-1.0, kNan, kInfinity, 1e-320}) {
    c.settings.softcap = softcap;
    EXPECT_THAT(refused(), HasSubstr("softcap: expected 0 (off) or a positive number"));
  }
  c.settings.softcap = 0;
  c.settings.window = -1;
  EXPECT_THAT(refused(), HasSubstr("window: expected 0 (off) or at least 1, got -1"));
  c.settings.window = 0;
  c.alibi_slopes = Tensor<double, 1>({4}), c.alibi_slopes(3) = kNan, c.settings.alignment = Alignment::top_left;
  EXPECT_THAT(refused(), HasSubstr("alibi_slopes[3]: expected a finite number of this type, got nan"));
  c.alibi_slopes = Tensor<double, 1>({2});
  EXPECT_THAT(refused(), HasSubstr("alibi_slopes: expected [H] = [4], got [2]"));
}
TEST_F(Border, RefusesToGuessPositions) {
  c.settings.causal = true;
  EXPECT_THAT(refused(),
              HasSubstr("alignment: with 3 queries on 6 keys, expected top_left, bottom_right or offsets"));
  c.settings.causal = false, c.settings.window = 2;
  EXPECT_THAT(refused(), HasSubstr("alignment"));
  c.settings.window = 0, c.alibi_slopes = Tensor<double, 1>({4});
  EXPECT_THAT(refused(), HasSubstr("alignment"));
  c.settings.alignment = Alignment::bottom_right;
  EXPECT_EQ(refused(), "accepted");
  c.settings.alignment = Alignment::offsets;
  EXPECT_THAT(refused(), HasSubstr("query_offsets: expected [B] = [2], got none"));
  c.query_offsets = Tensor<Index, 1>({2});
  EXPECT_EQ(refused(), "accepted");
  c.query_offsets(1) = std::numeric_limits<Index>::max();
  EXPECT_THAT(refused(), HasSubstr("query_offsets[1]: expected at most 2^53 either way"));
  c.query_offsets(1) = std::numeric_limits<Index>::min();
  EXPECT_THAT(refused(), HasSubstr("query_offsets[1]: expected at most 2^53 either way"));
  c.query_offsets(1) = 0, c.settings.alignment = Alignment::top_left;
  EXPECT_THAT(refused(), HasSubstr("query_offsets: expected only with Alignment::offsets"));
}
TEST_F(Border, RefusesMasksThatDoNotFit) {
  const AttentionCase<double> good = c.copy();
  c.bias = Tensor<double, 4>({2, 4, 3, 5});
  EXPECT_THAT(refused(), HasSubstr("bias: expected [B|1, H|1, Tq, Tk] = [2|1, 4|1, 3, 6], got [2, 4, 3, 5]"));
  c.bias = Tensor<double, 4>({2, 2, 3, 6});
  EXPECT_THAT(refused(), HasSubstr("bias"));
  c.bias = Tensor<double, 4>({1, 1, 1, 6});
  EXPECT_THAT(refused(), HasSubstr("bias"));
  c = good.copy(), c.keep = Tensor<bool, 4>({2, 4, 6, 3});
  EXPECT_THAT(refused(), HasSubstr("keep: expected [B|1, H|1, Tq, Tk] = [2|1, 4|1, 3, 6], got [2, 4, 6, 3]"));
  c = good.copy(), c.key_lengths = Tensor<Index, 1>({2}), c.key_lengths.fill(6), c.key_lengths(1) = 7;
  EXPECT_THAT(refused(), HasSubstr("key_lengths[1]: expected 0 to Tk = 6, got 7"));
  c.key_lengths(1) = -1;
  EXPECT_THAT(refused(), HasSubstr("key_lengths[1]: expected 0 to Tk = 6, got -1"));
  c.key_lengths = Tensor<Index, 1>({3});
  EXPECT_THAT(refused(), HasSubstr("key_lengths: expected [B] = [2], got [3]"));
  c = good.copy(), c.query_documents = Tensor<Index, 2>({2, 3});
  EXPECT_THAT(refused(), HasSubstr("documents: expected those of the queries and of the keys, got only one"));
  c.key_documents = Tensor<Index, 2>({2, 3});
  EXPECT_THAT(refused(), HasSubstr("key_documents: expected [B, Tk] = [2, 6], got [2, 3]"));
}
TEST_F(Border, RefusesOutputsThatDoNotFit) {
  AttentionResults<double> r(c.shape, {2, 4, 3, 6});
  const Context context;
  const auto forward = [&](const AttentionOutputs<double>& outputs) {
    attention_forward<double>(context, outputs, c.inputs(), c.options());
  };
  Tensor<double, 4> wrong({2, 4, 3, 7});
  EXPECT_THROW(forward({.out = wrong}), Error);
  EXPECT_THROW(forward({.out = {}}), Error);
  EXPECT_THROW(forward({.out = r.out, .row_max = r.row_max}), Error);
  EXPECT_THROW(forward({.out = r.out, .weights = wrong}), Error);
  EXPECT_THROW(forward({.out = r.out, .scores = wrong}), Error);
  const auto backward = [&](const AttentionGradients<double>& gradients, View<const double, 4> dout,
                            View<const double, 4> out) {
    attention_backward<double>(context, gradients, dout, c.inputs(),
                               {.out = out, .row_max = r.row_max, .row_sum = r.row_sum}, c.options());
  };
  r.row_sum.fill(1);
  EXPECT_NO_THROW(backward({.dq = r.dq, .dk = r.dk, .dv = r.dv}, c.dout, r.out));
  EXPECT_THROW(backward({.dq = wrong, .dk = r.dk, .dv = r.dv}, c.dout, r.out), Error);
  EXPECT_THROW(backward({.dq = r.dq, .dk = r.dq, .dv = r.dv}, c.dout, r.out), Error);
  EXPECT_THROW(backward({.dq = r.dq, .dk = r.dk, .dv = r.dk}, c.dout, r.out), Error);
  EXPECT_THROW(backward({.dq = r.dq, .dk = r.dk, .dv = r.dv}, wrong, r.out), Error);
  EXPECT_THROW(backward({.dq = r.dq, .dk = r.dk, .dv = r.dv}, c.dout, wrong), Error);
  EXPECT_THROW(backward({.dq = r.dq, .dk = r.dk, .dv = r.dv, .dbias = r.dbias}, c.dout, r.out), Error);
}

}  // namespace
}  // namespace heedful
