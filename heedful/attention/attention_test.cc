// Numbers that can be worked out by hand.
#include "heedful/attention/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "heedful/core/random.h"
#include "heedful/core/tensor.h"

namespace heedful {
namespace {

template <class T>
constexpr T kRounding = std::numeric_limits<T>::epsilon() / 2;

// One head, one sequence, every width 1: q [Tq], k and v [Tk]; the scores are q·k.
template <class T>
std::vector<T> attend(std::vector<T> q, std::vector<T> k, std::vector<T> v, AttentionOptions<T> options = {}) {
  const Index Tq = std::ssize(q), Tk = std::ssize(k);
  std::vector<T> out(q.size());
  attention_forward<T>(
      Context(), {.out = {out.data(), {1, 1, Tq, 1}}},
      {.q = {q.data(), {1, 1, Tq, 1}}, .k = {k.data(), {1, 1, Tk, 1}}, .v = {v.data(), {1, 1, Tk, 1}}}, options);
  return out;
}

template <class T>
class WorkedNumbers : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(WorkedNumbers, Types);

TYPED_TEST(WorkedNumbers, EqualScoresGiveTheMean) {
  EXPECT_EQ(attend<TypeParam>({0}, {0, 0}, {2, 8}), std::vector<TypeParam>{5});
}

TYPED_TEST(WorkedNumbers, LogThreeAgainstZeroWeighsThreeToOne) {
  // log 3, exp, the sum, two quotients and two products: at most 8 roundings of numbers up to 3.5 in size.
  using T = TypeParam;
  EXPECT_NEAR(attend<T>({1}, {std::log(T{3}), 0}, {2, 8})[0], T{3.5}, 8 * 3.5 * kRounding<T>);
}

TYPED_TEST(WorkedNumbers, CausalRowsSeeTheirPast) {
  const auto out = attend<TypeParam>({0, 0}, {0, 0}, {2, 8}, {.causal = true});
  EXPECT_EQ(out, (std::vector<TypeParam>{2, 5}));
}

// The mistake: normalise over both keys, then zero the future one. The first row then gives 1, not 2.
TYPED_TEST(WorkedNumbers, MaskingAfterTheSoftmaxIsAnotherResult) {
  using T = TypeParam;
  const T e = std::exp(T{0}), wrong = e / (e + e) * 2 + 0 * T{8};
  EXPECT_EQ(wrong, T{1});
  EXPECT_NE(attend<T>({0, 0}, {0, 0}, {2, 8}, {.causal = true})[0], wrong);
}

// p = (1/4, 3/4), upstream u = (1, 3): dS = p∘(u − p·u) = (−3/8, 3/8). Here s_j = q·k_j with q = 1 and scale 1, so
// dk is dS; v = (1, 3) and dout = 1 make u.
TYPED_TEST(WorkedNumbers, SoftmaxGradient) {
  using T = TypeParam;
  std::vector<T> q{1}, k{0, std::log(T{3})}, v{1, 3}, out(1), row_max(1), row_sum(1), dout{1}, dq(1), dk(2), dv(2);
  const AttentionInputs<T> inputs{
      .q = {q.data(), {1, 1, 1, 1}}, .k = {k.data(), {1, 1, 2, 1}}, .v = {v.data(), {1, 1, 2, 1}}};
  const View<T, 4> out_view(out.data(), {1, 1, 1, 1});
  const View<T, 3> max_view(row_max.data(), {1, 1, 1}), sum_view(row_sum.data(), {1, 1, 1});
  attention_forward<T>(Context(), {.out = out_view, .row_max = max_view, .row_sum = sum_view}, inputs, {});
  attention_backward<T>(Context(),
                        {.dq = {dq.data(), {1, 1, 1, 1}},
                         .dk = {dk.data(), {1, 1, 2, 1}},
                         .dv = {dv.data(), {1, 1, 2, 1}},
                         .dbias = {}},
                        {dout.data(), {1, 1, 1, 1}}, inputs,
                        {.out = out_view, .row_max = max_view, .row_sum = sum_view}, {});
  // At most 16 roundings of numbers up to 3 in size lie between the inputs and each result.
  const T tolerance = 16 * 3 * kRounding<T>;
  EXPECT_NEAR(dk[0], T{-0.375}, tolerance);
  EXPECT_NEAR(dk[1], T{0.375}, tolerance);
  EXPECT_NEAR(dv[0], T{0.25}, tolerance);
  EXPECT_NEAR(dv[1], T{0.75}, tolerance);
  EXPECT_NEAR(dq[0], T{0.375} * std::log(T{3}), tolerance);
}

// The article's mask example: 5×5 normal scores from seed 3, causal. Its printed matrices have three digits.
TEST(PrintedMaskMatrices, BeforeAndAfterTheSoftmax) {
  Random random(3);
  Tensor<double, 2> scores({5, 5});
  for (double& score : scores) score = random.normal();
  Tensor<double, 4> identity({1, 1, 5, 5}), keys({1, 1, 5, 5}), values({1, 1, 5, 1}), out({1, 1, 5, 1});
  Tensor<double, 4> weights({1, 1, 5, 5}), everything({1, 1, 5, 5});
  for (Index i = 0; i < 5; ++i) {
    identity(0, 0, i, i) = 1;
    for (Index j = 0; j < 5; ++j) keys(0, 0, j, i) = scores(i, j);
  }
  const AttentionInputs<double> inputs{.q = identity, .k = keys, .v = values};
  attention_forward<double>(Context(), {.out = out, .weights = weights}, inputs, {.scale = 1, .causal = true});
  attention_forward<double>(Context(), {.out = out, .weights = everything}, inputs, {.scale = 1});

  const double right[5][5] = {{1, 0, 0, 0, 0},
                              {0.859, 0.141, 0, 0, 0},
                              {0.462, 0.259, 0.278, 0, 0},
                              {0.119, 0.285, 0.138, 0.458, 0},
                              {0.115, 0.529, 0.194, 0.068, 0.094}};
  const double wrong_row_sums[5] = {0.733, 0.031, 0.759, 0.874, 1};  // of the softmax masked afterwards
  double deviation = 0;
  for (Index i = 0; i < 5; ++i) {
    double right_sum = 0, wrong_sum = 0;
    for (Index j = 0; j < 5; ++j) {
      const double wrong = j <= i ? everything(0, 0, i, j) : 0;
      EXPECT_NEAR(weights(0, 0, i, j), right[i][j], 0.0005);
      right_sum += weights(0, 0, i, j);
      wrong_sum += wrong;
      deviation = std::max(deviation, std::abs(weights(0, 0, i, j) - wrong));
    }
    EXPECT_NEAR(right_sum, 1, 10 * kRounding<double>);
    EXPECT_NEAR(wrong_sum, wrong_row_sums[i], 0.0005);
  }
  EXPECT_NEAR(deviation, 0.8317, 0.00005);
}

// Options are in double; 1e300 would be infinite in the arithmetic, and 1e-60 nothing to divide by.
TEST(Attention, RefusesOptionsOutOfTheRangeOfFloat) {
  Tensor<float, 4> q({1, 1, 1, 1}), out({1, 1, 1, 1});
  Tensor<double, 1> slopes({1});
  const auto accepts = [&](const AttentionOptions<float>& options) {
    try {
      attention_forward<float>(Context(), {.out = out}, {q, q, q}, options);
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  AttentionOptions<float> options{.scale = 1e38, .softcap = 1e38, .alibi_slopes = slopes};
  slopes(0) = -1e38;
  EXPECT_TRUE(accepts(options));
  options.scale = -1e300;
  EXPECT_FALSE(accepts(options));
  options.scale = 1;
  for (const double softcap : {1e300, 1e-60}) {
    options.softcap = softcap;
    EXPECT_FALSE(accepts(options)) << softcap;
  }
  options.softcap = 0;
  slopes(0) = 1e300;
  EXPECT_FALSE(accepts(options));
}

}  // namespace
}  // namespace heedful
