#include "heedful/kernels/adam.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "heedful/core/error.h"
#include "heedful/formats/golden_case.h"
#include "heedful/kernels/adam_reference.h"
#include "heedful/kernels/each_target.h"
#include "heedful/kernels/test_support.h"

namespace heedful {
namespace {

using testing_support::bits;
using testing_support::Inputs;

// In double the kernel is the formula in NumPy's order of operations, so the bits agree over many steps.
TEST(Adam, DoubleIsTheFormulaBitForBit) {
  for (const double decay : {0.0, 0.01}) {
    const AdamOptions options{.learning_rate = 3e-3, .weight_decay = decay};
    Inputs inputs(1);
    auto p = inputs.tensor<double, 1>({37});
    auto expected = p.copy();
    Tensor<double, 1> m({37}), v({37}), expected_m({37}), expected_v({37});
    for (Index step = 1; step <= 50; ++step) {
      const auto gradient = inputs.tensor<double, 1>({37}, std::pow(10.0, static_cast<double>(step % 9) - 6));
      adam_step(Context(), p.view(), {m, v}, gradient, step, options);
      adam_reference(expected, {expected_m, expected_v}, gradient, step, options);
      for (Index i = 0; i < 37; ++i) {
        ASSERT_EQ(bits(m(i)), bits(expected_m(i)));
        ASSERT_EQ(bits(v(i)), bits(expected_v(i)));
        ASSERT_EQ(bits(p(i)), bits(expected(i)));
      }
    }
  }
}

// m = g and v = g² after correction, so the first step is η·g/(|g| + ε) whatever the scale of the gradient.
TEST(Adam, FirstStepHasTheLearningRatesSize) {
  const AdamOptions options{.learning_rate = 0.1};
  for (const double slope : {1e-30, 1e-8, 1e-3, 1.0, 1e4, 1e30}) {
    Tensor<double, 1> p({2}), m({2}), v({2}), gradient({2});
    gradient(0) = slope, gradient(1) = -slope;
    adam_step(Context(), p.view(), {m, v}, gradient, 1, options);
    const double expected = 0.1 * slope / (slope + 1e-8);
    // (1 − β) and 1 − βᵗ cancel up to two roundings each, of which 1 − 0.999 alone loses 2⁻⁵³/0.001.
    EXPECT_NEAR(p(0), -expected, expected * 2e-13);
    EXPECT_EQ(p(1), -p(0));
  }
}

TEST(Adam, DecayShrinksWhatHasNoGradientAndTouchesNoMoment) {
  const AdamOptions options{.learning_rate = 0.5, .weight_decay = 0.25};
  Tensor<double, 1> p({1}), m({1}), v({1}), gradient({1});
  p(0) = 8;
  adam_step(Context(), p.view(), {m, v}, gradient, 1, options);
  EXPECT_EQ(p(0), 8 - 0.125 * 8);
  EXPECT_EQ(m(0), 0);
  EXPECT_EQ(v(0), 0);
}

// Float differs from double in the roundings of p, m and v alone: relative u each for m and v, which with p's own
// make at most (1 + 1/2 + …) of a step and u·|p| more. Started from the same numbers: one step, then compare.
TEST(Adam, FloatRoundsOncePerNumber) {
  const double unit = 0x1p-24;
  Inputs inputs(2);
  auto p = inputs.tensor<float, 1>({101}, 10), m = inputs.tensor<float, 1>({101}, 1e-3);
  auto v = inputs.tensor<float, 1>({101}, 1e-5);
  for (float& element : v) element = std::abs(element);
  const auto gradient = inputs.tensor<float, 1>({101}, 1e-2);
  Tensor<double, 1> wide_p({101}), wide_m({101}), wide_v({101}), wide_gradient({101});
  for (Index i = 0; i < 101; ++i) {
    wide_p(i) = p(i), wide_m(i) = m(i), wide_v(i) = v(i), wide_gradient(i) = gradient(i);
  }
  adam_step(Context(), p.view(), {m, v}, gradient, 7, {});
  adam_reference(wide_p, {wide_m, wide_v}, wide_gradient, 7, {});
  for (Index i = 0; i < 101; ++i) {
    EXPECT_NEAR(p(i), wide_p(i), unit * std::abs(wide_p(i)));
    EXPECT_NEAR(m(i), wide_m(i), unit * std::abs(wide_m(i)));
    EXPECT_NEAR(v(i), wide_v(i), unit * std::abs(wide_v(i)));
  }
}

TEST(Adam, ThreadsTargetsAndStridesChangeNoBit) {
  Inputs inputs(3);
  const Index count = 100003;
  const auto start = inputs.tensor<float, 1>({count}), gradient = inputs.tensor<float, 1>({count});
  auto p = start.copy();
  Tensor<float, 1> m({count}), v({count});
  adam_step(Context(1), p.view(), {m, v}, gradient, 1, {.weight_decay = 0.1});
  Tensor<float, 2> strided({count, 3});
  const auto column = [&](Index i) { return View<float, 1>(strided.data() + i, {count}, {3}); };
  for (Index i = 0; i < count; ++i) column(0)[i] = start(i);
  adam_step(Context(3), column(0), {column(1), column(2)}, gradient, 1, {.weight_decay = 0.1});
  Index different = 0;
  for (Index i = 0; i < count; ++i) {
    different +=
        bits(p(i)) != bits(column(0)[i]) || bits(m(i)) != bits(column(1)[i]) || bits(v(i)) != bits(column(2)[i]);
  }
  for_each_target([&](const char*) {
    auto here = start.copy();
    Tensor<float, 1> first({count}), second({count});
    adam_step(Context(1), here.view(), {first, second}, gradient, 1, {.weight_decay = 0.1});
    for (Index i = 0; i < count; ++i) different += bits(p(i)) != bits(here(i));
  });
  EXPECT_EQ(different, 0);
}

TEST(Adam, RefusesWhatIsOutOfRange) {
  Tensor<double, 1> p({2}), m({2}), v({2}), gradient({2}), other({3});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto step = [&](Index t, const AdamOptions& options) {
    adam_step(Context(), p.view(), {m, v}, gradient, t, options);
  };
  EXPECT_NO_THROW(step(1, {}));
  EXPECT_THROW(step(0, {}), Error);
  EXPECT_THROW(step(1, {.learning_rate = nan}), Error);
  EXPECT_THROW(step(1, {.learning_rate = -1}), Error);
  EXPECT_THROW(step(1, {.beta1 = 1}), Error);
  EXPECT_THROW(step(1, {.beta2 = nan}), Error);
  EXPECT_THROW(step(1, {.epsilon = -1e-8}), Error);
  EXPECT_THROW(step(1, {.weight_decay = std::numeric_limits<double>::infinity()}), Error);
  EXPECT_THROW(adam_step(Context(), p.view(), {m, other}, gradient, 1, {}), Error);
  EXPECT_THROW(adam_step(Context(), p.view(), {m, v}, other, 1, {}), Error);
}

// ONNX's Adam has no bias correction at T = 0 (as here), adds norm_coefficient·x to the gradient, and puts ε beside
// the uncorrected root. Its moments are ours with that gradient; its step is compared through theirs, because ours
// always corrects.
TEST(Adam, OnnxMoments) {
  const auto cases = golden_cases("Adam");
  if (cases.empty()) GTEST_SKIP() << "no recorded operator cases at " << HEEDFUL_GOLDENS;
  for (const auto& path : cases) {
    const GoldenCase golden = load_golden_case(path);
    SCOPED_TRACE(golden.name);
    const AdamOptions options{.beta1 = golden.attribute("alpha", 0.9),
                              .beta2 = golden.attribute("beta", 0.999),
                              .epsilon = golden.attribute("epsilon", 1e-6)};
    const double penalty = golden.attribute("norm_coefficient", 0.0);
    const double rate = to_vector<double>(*golden.input(0), "R")[0];
    ASSERT_EQ(to_vector<double>(*golden.input(1), "T")[0], 0);
    const std::size_t tensors = (golden.input_names.size() - 2) / 4;
    for (std::size_t i = 0; i < tensors; ++i) {
      const auto numbers = [&](std::size_t group) {
        return to_tensor<double, 1>(*golden.input(2 + group * tensors + i), "input");
      };
      auto p = numbers(0), gradient = numbers(1), m = numbers(2), v = numbers(3);
      for (Index j = 0; j < p.size(); ++j) gradient(j) += penalty * p(j);
      auto corrected = p.copy();
      adam_step(Context(), corrected.view(), {m, v}, gradient, 1, options);
      const auto expect = [&](const Tensor<double, 1>& got, std::size_t group) {
        const auto expected = to_vector<double>(*golden.output(group * tensors + i), "output");
        for (Index j = 0; j < got.size(); ++j) {
          const double value = expected[static_cast<std::size_t>(j)];
          EXPECT_NEAR(got(j), value, 8 * 0x1p-24 * std::max(1.0, std::abs(value)));  // the recording ran in float
        }
      };
      expect(m, 1);
      expect(v, 2);
      for (Index j = 0; j < p.size(); ++j) p(j) -= rate * m(j) / (std::sqrt(v(j)) + options.epsilon);
      expect(p, 0);
    }
  }
}

}  // namespace
}  // namespace heedful
