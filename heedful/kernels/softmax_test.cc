#include "heedful/kernels/softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "heedful/core/error.h"
#include "heedful/formats/golden_case.h"
#include "heedful/kernels/each_target.h"
#include "heedful/kernels/gradient_support.h"
#include "heedful/kernels/softmax_reference.h"
#include "heedful/kernels/test_support.h"

namespace heedful {
namespace {

using testing_support::bits;
using testing_support::Inputs;

template <class T>
constexpr double kUnit = std::numeric_limits<T>::epsilon() / 2;

// A library's exp or log may be off by this many roundings (2 ulp).
constexpr double kFunctionRoundings = 4;

template <class T>
class SoftmaxTest : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(SoftmaxTest, Types);

// y = exp(x − m)/Σ: the difference is rounded once, which moves the exponent by |x − m|·u; exp is off by
// kFunctionRoundings; the sum by V/16 + 5 additions and the mean error of its terms, where Σ p·|x − m| is at most the
// entropy, log V; the division rounds once. Below the smallest normal number all is 0.
template <class T>
double relative_tolerance(double below_maximum, Index count) {
  const double terms = std::log(static_cast<double>(count)) + static_cast<double>(count) / 16 + 5;
  return 1.01 * (kUnit<T> + 0x1p-53) * (below_maximum + 2 * kFunctionRoundings + terms + 1);
}

TYPED_TEST(SoftmaxTest, MatchesTheReferenceAtEveryMagnitude) {
  using T = TypeParam;
  const Context context;
  for (const double magnitude : {0.0, 1e-3, 1.0, 30.0, 1e4}) {
    for (const Index count : {1, 2, 3, 7, 16, 17, 33, 500}) {
      Inputs inputs(1);
      const auto x = inputs.tensor<T, 2>({5, count}, magnitude);
      Tensor<T, 2> y(x.extents()), log_y(x.extents());
      softmax_forward(context, y.view(), x);
      log_softmax_forward(context, log_y.view(), x);
      const auto wide = testing_support::widened(x.view());
      Tensor<double, 2> expected(x.extents()), log_expected(x.extents());
      softmax_reference<double>(expected, wide);
      log_softmax_reference<double>(log_expected, wide);
      for (Index n = 0; n < 5; ++n) {
        double maximum = wide(n, 0);
        for (Index v = 0; v < count; ++v) maximum = std::max(maximum, wide(n, v));
        for (Index v = 0; v < count; ++v) {
          const double below = maximum - wide(n, v);
          EXPECT_NEAR(static_cast<double>(y(n, v)), expected(n, v),
                      relative_tolerance<T>(below, count) * expected(n, v) +
                          static_cast<double>(std::numeric_limits<T>::min()));
          // The logarithm turns the sum's relative error into an absolute one; log and two subtractions round.
          EXPECT_NEAR(
              static_cast<double>(log_y(n, v)), log_expected(n, v),
              relative_tolerance<T>(0, count) +
                  (kUnit<T> + 0x1p-53) * (below + kFunctionRoundings * std::log(static_cast<double>(count) + 1) +
                                          std::abs(log_expected(n, v))));
        }
      }
    }
  }
}

TYPED_TEST(SoftmaxTest, KnownRows) {
  using T = TypeParam;
  const Context context;
  const T infinity = std::numeric_limits<T>::infinity();
  Tensor<T, 2> x({6, 3}), y({6, 3});
  const T rows[6][3] = {{2, 2, 2},
                        {-10000, -10000, -10000},   // far below any "very small" constant
                        {10000, 10000, -10000},     // a tie at the top
                        {-infinity, 0, -infinity},  // −∞ has weight 0
                        {-infinity, -infinity, -infinity},
                        {0, std::numeric_limits<T>::quiet_NaN(), 1}};
  for (Index n = 0; n < 6; ++n) std::copy_n(rows[n], 3, &x(n, 0));
  softmax_forward(context, y.view(), x);
  for (Index v = 0; v < 3; ++v) {
    EXPECT_EQ(y(0, v), T{1} / T{3});
    EXPECT_EQ(y(1, v), T{1} / T{3});
    EXPECT_EQ(y(2, v), v < 2 ? T{0.5} : T{0});
    EXPECT_EQ(y(3, v), v == 1 ? T{1} : T{0});
    EXPECT_TRUE(std::isnan(y(4, v)));
    EXPECT_TRUE(std::isnan(y(5, v)));
  }
  log_softmax_forward(context, y.view(), x);
  EXPECT_EQ(y(3, 1), 0);
  EXPECT_EQ(y(3, 0), -infinity);
  EXPECT_NEAR(static_cast<double>(y(2, 2)), -20000 - std::log(2.0), 20000 * kUnit<T>);
}

// The same row: alone, in a batch, in place, through strides, on several threads, on every
// target.
TYPED_TEST(SoftmaxTest, ARowsBitsDependOnThatRowAlone) {
  using T = TypeParam;
  constexpr Index kRows = 301, kColumns = 237;
  Inputs inputs(2);
  const auto x = inputs.tensor<T, 2>({kRows, kColumns}, 5), dy = inputs.tensor<T, 2>({kRows, kColumns});
  const Extents<3> shape{4, kRows, kColumns};
  const auto all = [&](const Context& context, View<T, 3> result, Index begin, Index end) {
    const auto rows = [&](const auto& view) { return view.slice(0, begin, end); };
    softmax_forward<T>(context, rows(result[0]), rows(x.view()));
    softmax_backward<T>(context, rows(result[1]), rows(dy.view()), rows(result[0]));
    log_softmax_forward<T>(context, rows(result[2]), rows(x.view()));
    log_softmax_backward<T>(context, rows(result[3]), rows(dy.view()), rows(result[2]));
  };
  Tensor<T, 3> batch(shape);
  all(Context(1), batch, 0, kRows);
  const auto expect_same = [&](const View<T, 3>& other) {
    Index different = 0;
    for (Index i = 0; i < 4; ++i) {
      for (Index n = 0; n < kRows; ++n) {
        for (Index v = 0; v < kColumns; ++v) different += bits(batch(i, n, v)) != bits(other(i, n, v));
      }
    }
    EXPECT_EQ(different, 0);
  };

  Tensor<T, 3> alone(shape), threads(shape), columns({4, kColumns, kRows});
  for (Index n = 0; n < kRows; ++n) all(Context(1), alone, n, n + 1);
  expect_same(alone);
  all(Context(3), threads, 0, kRows);
  expect_same(threads);
  all(Context(1), columns.view().permute({0, 2, 1}), 0, kRows);
  expect_same(columns.view().permute({0, 2, 1}));

  Tensor<T, 3> in_place(shape);
  for (Index i = 0; i < 4; ++i) std::copy_n(i % 2 == 0 ? x.data() : dy.data(), x.size(), &in_place(i, 0, 0));
  softmax_forward<T>(Context(), in_place.view()[0], in_place.view()[0]);
  softmax_backward<T>(Context(), in_place.view()[1], in_place.view()[1], in_place.view()[0]);
  log_softmax_forward<T>(Context(), in_place.view()[2], in_place.view()[2]);
  log_softmax_backward<T>(Context(), in_place.view()[3], in_place.view()[3], in_place.view()[2]);
  expect_same(in_place);

  for_each_target([&](const char* target) {
    SCOPED_TRACE(target);
    all(Context(1), alone, 0, kRows);
    expect_same(alone);
  });
}

template <class Reference>
std::vector<Dual> on_duals(const Reference& reference, std::vector<Dual> x, const Extents<2>& shape) {
  std::vector<Dual> y(x.size());
  reference(View<Dual, 2>(y.data(), shape), View<Dual, 2>(x.data(), shape));
  return y;
}

TEST(Softmax, GradientsMatchDualsAndDifferences) {
  const Context context;
  for (const Extents<2>& shape : {Extents<2>{3, 1}, {1, 2}, {2, 7}, {1, 33}}) {
    Inputs inputs(3);
    const auto x = inputs.tensor<double, 2>(shape, 2), dy = inputs.tensor<double, 2>(shape);
    const std::vector<double> xs(x.begin(), x.end()), dys(dy.begin(), dy.end());
    Tensor<double, 2> y(shape), dx(shape);

    softmax_forward(context, y.view(), x);
    softmax_backward(context, dx.view(), dy, y);
    const auto softmax = [&](View<Dual, 2> out, View<Dual, 2> in) { softmax_reference(out, in); };
    testing_support::expect_gradient(
        dx, testing_support::dual_gradient([&](auto& v) { return on_duals(softmax, v, shape); }, xs, dys, 1), "dual");
    const auto kernel = [&](const std::vector<double>& v) {
      std::vector<double> out(v.size());
      softmax_forward<double>(context, {out.data(), shape}, View<const double, 2>(v.data(), shape));
      return out;
    };
    testing_support::expect_gradient(dx, testing_support::difference_gradient(kernel, xs, dys), "difference");

    log_softmax_forward(context, y.view(), x);
    log_softmax_backward(context, dx.view(), dy, y);
    const auto log_softmax = [&](View<Dual, 2> out, View<Dual, 2> in) { log_softmax_reference(out, in); };
    testing_support::expect_gradient(
        dx,
        testing_support::dual_gradient([&](auto& v) { return on_duals(log_softmax, v, shape); }, xs, dys,
                                       static_cast<double>(shape[1])),
        "dual of log");
    const auto log_kernel = [&](const std::vector<double>& v) {
      std::vector<double> out(v.size());
      log_softmax_forward<double>(context, {out.data(), shape}, View<const double, 2>(v.data(), shape));
      return out;
    };
    testing_support::expect_gradient(dx, testing_support::difference_gradient(log_kernel, xs, dys),
                                     "difference of log");
  }
}

TEST(Softmax, GradientIsZeroWhereTheWeightIsAndSumsToZero) {
  Tensor<double, 2> x({1, 3}), y({1, 3}), dy({1, 3}), dx({1, 3});
  x(0, 0) = 0, x(0, 1) = std::log(3.0), x(0, 2) = -std::numeric_limits<double>::infinity();
  dy(0, 0) = 1, dy(0, 1) = 3, dy(0, 2) = 1e300;
  softmax_forward(Context(), y.view(), x);
  softmax_backward(Context(), dx.view(), dy, y);
  EXPECT_NEAR(dx(0, 0), -0.375, 1e-15);  // four roundings of numbers below 3
  EXPECT_NEAR(dx(0, 1), 0.375, 1e-15);
  EXPECT_EQ(dx(0, 2), 0);
}

TEST(Softmax, EmptyRowsAndColumnsAreNoWork) {
  Tensor<float, 2> none({0, 5}), narrow({3, 0}), x({3, 5}), y({5, 3});
  EXPECT_NO_THROW(softmax_forward(Context(), none.view(), none));
  EXPECT_NO_THROW(log_softmax_forward(Context(), narrow.view(), narrow));
  EXPECT_THROW(softmax_forward(Context(), y.view(), x), Error);
  EXPECT_THROW(softmax_backward(Context(), x.view(), y, x), Error);
  EXPECT_THROW(log_softmax_backward(Context(), x.view(), x, y), Error);
}

// The recorded outputs are float; ours differ by the kernel's own error and the recording's.
TEST(Softmax, OnnxCases) {
  int cases = 0;
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    for (const auto& path : golden_cases(op)) {
      const GoldenCase golden = load_golden_case(path);
      SCOPED_TRACE(golden.name);
      const Array& input = *golden.input(0);
      const Index rank = std::ssize(input.shape);
      const Index axis = (golden.attribute("axis", Index{-1}) + rank) % rank;
      // [before, axis, after] → rows over (before, after): a view for each `before`, through strides.
      Index before = 1, after = 1;
      for (Index i = 0; i < rank; ++i) (i < axis ? before : after) *= i == axis ? 1 : input.shape[std::size_t(i)];
      const Index count = input.shape[static_cast<std::size_t>(axis)];
      auto x = to_vector<float>(input, "x"), expected = to_vector<float>(*golden.output(0), "y");
      std::vector<float> y(x.size());
      for (Index b = 0; b < before; ++b) {
        const auto rows = [&](std::vector<float>& v) {
          return View<float, 2>(v.data() + b * count * after, {after, count}, {1, after});
        };
        op[0] == 'S' ? softmax_forward<float>(Context(), rows(y), rows(x))
                     : log_softmax_forward<float>(Context(), rows(y), rows(x));
      }
      for (std::size_t i = 0; i < y.size(); ++i) {
        EXPECT_NEAR(y[i], expected[i],
                    2 * relative_tolerance<float>(20, count) * std::max(1.0f, std::abs(expected[i])));
      }
      ++cases;
    }
  }
  if (cases == 0) GTEST_SKIP() << "no recorded operator cases at " << HEEDFUL_GOLDENS;
  EXPECT_EQ(cases, 13);
}

}  // namespace
}  // namespace heedful
