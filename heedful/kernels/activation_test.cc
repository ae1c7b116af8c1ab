#include "heedful/kernels/activation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "heedful/core/error.h"
#include "heedful/formats/golden_case.h"
#include "heedful/kernels/activation_reference.h"
#include "heedful/kernels/each_target.h"
#include "heedful/kernels/gradient_support.h"
#include "heedful/kernels/test_support.h"

namespace heedful {
namespace {

using testing_support::bits;
using testing_support::Inputs;

constexpr Activation kKinds[] = {Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu};

template <class T>
constexpr double kUnit = std::numeric_limits<T>::epsilon() / 2;
template <class T>
constexpr double kNormal = static_cast<double>(std::numeric_limits<T>::min());  // what is below may be 0

// How far the value and the slope may be off, in roundings of the size of their parts. The exponential may be off by 4
// (2 ulp), and an argument off by k·u moves exp(−z) by k·|z|·u.
//   gelu       a² is split exactly; 1/(a + 4), v, the polynomial and its fit, three products: 14 with the exponential
//   gelu_tanh  2u = z by six roundings: 6|z| + 4, then 1 + e, a division and a product
//   silu       z = x exactly
// The slopes add x times a derivative whose argument is off likewise; their parts are counted by absolute value.
double roundings(Activation kind, double x) {
  const double z = 1.6 * std::abs(x) * (1 + 0.0448 * x * x);
  switch (kind) {
    case Activation::relu:
      return 0;
    case Activation::gelu:
      return 18;
    case Activation::gelu_tanh:
      return 6 * z + 12;
    case Activation::silu:
      return 12;
  }
  return 0;
}

// |act′|'s parts: what is added before it cancels.
double slope_parts(Activation kind, double x, double slope) {
  if (kind == Activation::gelu) {
    return std::abs(std::erfc(-x / std::numbers::sqrt2) / 2) + std::abs(x) * 0.4 * std::exp(-x * x / 2);
  }
  const double s = 1 / (1 + std::exp(kind == Activation::silu ? -x : -1.5957691216 * x * (1 + 0.044715 * x * x)));
  const double by = kind == Activation::silu ? 1 : 1.6 * (1 + 0.135 * x * x);
  return kind == Activation::relu ? std::abs(slope) : s + std::abs(x) * s * (1 - s) * by;
}

template <class T>
class ActivationTest : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(ActivationTest, Types);

TYPED_TEST(ActivationTest, MatchesTheReferenceAtEveryMagnitude) {
  using T = TypeParam;
  const Context context;
  for (const Activation kind : kKinds) {
    for (const double magnitude : {1e-4, 1.0, 8.0, 30.0, 1e4}) {
      Inputs inputs(1);
      const auto x = inputs.tensor<T, 2>({3, 101}, magnitude), dy = inputs.tensor<T, 2>({3, 101});
      Tensor<T, 2> y({3, 101}), dx({3, 101});
      activation_forward<T>(context, y, x, kind);
      activation_backward<T>(context, dx, dy, x, kind);
      for (Index i = 0; i < x.size(); ++i) {
        const double at = x.data()[i], up = dy.data()[i];
        const Dual expected = activation_reference(Dual(at, 1), kind);
        // In double the reference is the less accurate: its t = x/√2 is off by two roundings, which move erfc by
        // 2t² = x².
        const double of_reference = 0x1p-53 * (roundings(kind, at) + (kind == Activation::gelu ? 2 * at * at : 0));
        const double unit = 1.01 * (kUnit<T> * roundings(kind, at) + of_reference);
        // The reference's own tanh form loses up to a rounding of x/2 where 1 + tanh cancels, so far to the left the
        // formula is not the better of the two; there both are below that rounding.
        const double lost = kind == Activation::gelu_tanh ? 4 * 0x1p-53 * (std::abs(at) + 1) * (1 + at * at) : 0;
        EXPECT_NEAR(y.data()[i], expected.value,
                    unit * std::abs(expected.value) + lost + 2 * kNormal<T> * (1 + std::abs(at)))
            << "x = " << at;
        const double parts = slope_parts(kind, at, expected.slope);
        EXPECT_NEAR(dx.data()[i], up * expected.slope,
                    std::abs(up) * (unit * parts + lost) + kUnit<T> * std::abs(up * expected.slope) +
                        2 * kNormal<T> * (1 + std::abs(at)))
            << "x = " << at;
      }
    }
  }
}

TYPED_TEST(ActivationTest, KnownValuesAndLimits) {
  using T = TypeParam;
  const Context context;
  Tensor<T, 2> x({1, 6}), y({1, 6}), dx({1, 6}), one({1, 6});
  const T points[6] = {0, 1, -1, 10000, -10000, std::numeric_limits<T>::quiet_NaN()};
  std::copy_n(points, 6, x.data());
  one.fill(1);
  const double at_one[] = {1, 0.84134474606854293, 0.84119199060827676, 0.73105857863000490};
  for (const Activation kind : kKinds) {
    activation_forward<T>(context, y, x, kind);
    activation_backward<T>(context, dx, one, x, kind);
    const double value = at_one[static_cast<int>(kind)];
    EXPECT_EQ(y(0, 0), 0);
    EXPECT_NEAR(y(0, 1), value, 16 * kUnit<T>);
    EXPECT_NEAR(y(0, 2), value - 1, 16 * kUnit<T>);  // act(x) − act(−x) = x for all four
    EXPECT_EQ(y(0, 3), 10000);
    EXPECT_EQ(y(0, 4), 0);
    EXPECT_TRUE(std::isnan(y(0, 5)));
    EXPECT_EQ(dx(0, 0), kind == Activation::relu ? T{0} : T{0.5});
    EXPECT_EQ(dx(0, 3), 1);
    EXPECT_EQ(dx(0, 4), 0);
  }
}

// 1 + erf has lost every digit at −8.5 in double; the kernel has not: asymptotically Φ(x) = φ(x)/|x|·(1 − 1/x² + 3/x⁴).
TEST(Activation, GeluKeepsItsDigitsFarToTheLeft) {
  Tensor<double, 2> x({1, 1}), y({1, 1});
  x(0, 0) = -30;
  activation_forward<double>(Context(), y, x, Activation::gelu);
  const double density = std::exp(-450.0) / std::sqrt(2 * std::numbers::pi);
  EXPECT_NEAR(y(0, 0) / -density, 1 - 1 / 900.0 + 3 / 810000.0, 15 / std::pow(30.0, 6) + 2000 * 0x1p-53);
}

TEST(Activation, GradientsMatchDifferences) {
  const Context context;
  Inputs inputs(2);
  const auto x = inputs.tensor<double, 2>({4, 9}, 4), dy = inputs.tensor<double, 2>({4, 9});
  const std::vector<double> xs(x.begin(), x.end()), dys(dy.begin(), dy.end());
  for (const Activation kind : kKinds) {
    Tensor<double, 2> dx({4, 9});
    activation_backward<double>(context, dx, dy, x, kind);  // no |x| here is within a step of relu's kink
    const auto kernel = [&](const std::vector<double>& v) {
      std::vector<double> y(v.size());
      activation_forward<double>(context, {y.data(), {4, 9}}, View<const double, 2>(v.data(), {4, 9}), kind);
      return y;
    };
    testing_support::expect_gradient(dx, testing_support::difference_gradient(kernel, xs, dys), "activation");
  }
}

// Both inputs of the gated unit behind one another, gate first.
TEST(Activation, GatedGradientsMatchDualsAndDifferences) {
  const Context context;
  const Extents<2> shape{3, 7};
  Inputs inputs(3);
  const auto both = inputs.tensor<double, 1>({42}, 3);
  const auto dy = inputs.tensor<double, 2>(shape);
  const std::vector<double> point(both.begin(), both.end()), dys(dy.begin(), dy.end());
  const auto input_of = [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    return GatedInput<T>{{p, shape}, {p + 21, shape}};
  };
  for (const Activation kind : kKinds) {
    Tensor<double, 1> gradient({42});
    gated_backward<double>(context, input_of(gradient.data()), dy, input_of(point.data()), kind);
    const auto on_duals = [&](const std::vector<Dual>& v) {
      std::vector<Dual> y(21);
      for (std::size_t i = 0; i < 21; ++i) y[i] = activation_reference(v[i], kind) * v[i + 21];
      return y;
    };
    testing_support::expect_gradient(gradient, testing_support::dual_gradient(on_duals, point, dys, 4), "dual");
    const auto kernel = [&](const std::vector<double>& v) {
      std::vector<double> y(21);
      gated_forward<double>(context, {y.data(), shape}, input_of(v.data()), kind);
      return y;
    };
    testing_support::expect_gradient(gradient, testing_support::difference_gradient(kernel, point, dys),
                                     "difference");
  }
}

TYPED_TEST(ActivationTest, ThreadsTargetsStridesAndPlaceChangeNoBit) {
  using T = TypeParam;
  constexpr Index kRows = 130, kColumns = 301;
  Inputs inputs(4);
  const auto x = inputs.tensor<T, 2>({kRows, kColumns}, 3), up = inputs.tensor<T, 2>({kRows, kColumns});
  const auto dy = inputs.tensor<T, 2>({kRows, kColumns});
  const auto all = [&](const Context& context, const View<T, 3>& out, Activation kind) {
    activation_forward<T>(context, out[0], x, kind);
    activation_backward<T>(context, out[1], dy, x, kind);
    gated_forward<T>(context, out[2], {x, up}, kind);
    gated_backward<T>(context, {out[3], out[4]}, dy, {x, up}, kind);
  };
  for (const Activation kind : kKinds) {
    Tensor<T, 3> expected({5, kRows, kColumns}), threads(expected.extents()), columns({5, kColumns, kRows});
    all(Context(1), expected, kind);
    all(Context(3), threads, kind);
    all(Context(2), columns.view().permute({0, 2, 1}), kind);
    Tensor<T, 3> in_place(expected.extents());
    for (Index i = 0; i < 5; ++i) std::copy_n(i == 4 ? up.data() : x.data(), x.size(), &in_place(i, 0, 0));
    const View<T, 3> here = in_place;
    activation_forward<T>(Context(), here[0], here[0], kind);
    activation_backward<T>(Context(), here[1], dy, here[1], kind);
    gated_forward<T>(Context(), here[2], {here[2], up}, kind);
    gated_backward<T>(Context(), {here[3], here[4]}, dy, {here[3], here[4]}, kind);
    Index different = 0;
    for (Index i = 0; i < 5; ++i) {
      for (Index n = 0; n < kRows; ++n) {
        for (Index f = 0; f < kColumns; ++f) {
          const auto value = bits(expected(i, n, f));
          different +=
              value != bits(threads(i, n, f)) || value != bits(columns(i, f, n)) || value != bits(here(i, n, f));
        }
      }
    }
    for_each_target([&](const char*) {
      all(Context(1), threads, kind);
      for (Index i = 0; i < expected.size(); ++i) {
        different += bits(expected.data()[i]) != bits(threads.data()[i]);
      }
    });
    EXPECT_EQ(different, 0) << static_cast<int>(kind);
  }
}

TEST(Activation, RefusesShapesThatDiffer) {
  Tensor<float, 2> x({2, 3}), other({3, 2});
  EXPECT_THROW(activation_forward<float>(Context(), other, x, Activation::silu), Error);
  EXPECT_THROW(activation_backward<float>(Context(), x, other, x, Activation::silu), Error);
  EXPECT_THROW(gated_forward<float>(Context(), x, {x, other}, Activation::silu), Error);
  EXPECT_THROW(gated_backward<float>(Context(), {x, other}, x, {x, x}, Activation::silu), Error);
  EXPECT_THROW(activation_forward<float>(Context(), x, x, static_cast<Activation>(9)), Error);
}

// Sigmoid is not a function of ours, but silu(x) is x times it. Tanh is out of scope: nothing of ours computes it (the
// tanh of gelu_tanh takes another argument and is evaluated as a logistic function).
TEST(Activation, OnnxCases) {
  int cases = 0;
  for (const char* op : {"Gelu", "Swish", "Sigmoid"}) {
    for (const auto& path : golden_cases(op)) {
      const GoldenCase golden = load_golden_case(path);
      SCOPED_TRACE(golden.name);
      ASSERT_EQ(golden.attribute("alpha", 1.0), 1.0);
      Activation kind = Activation::silu;
      if (op[0] == 'G') {
        kind =
            golden.attribute<std::string>("approximate", "none") == "tanh" ? Activation::gelu_tanh : Activation::gelu;
      }
      auto x = to_vector<float>(*golden.input(0), "x");
      const auto expected = to_vector<float>(*golden.output(0), "y");
      const Index count = std::ssize(x);
      Tensor<float, 2> y({1, count});
      activation_forward<float>(Context(), y, View<float, 2>(x.data(), {1, count}), kind);
      for (Index i = 0; i < count; ++i) {
        const float at = x[static_cast<std::size_t>(i)];
        const double value = expected[static_cast<std::size_t>(i)] * (op[1] == 'i' ? at : 1.0f);
        // The recording ran in float as well; its 1 + erf and 1 + tanh lose a rounding of x.
        EXPECT_NEAR(y(0, i), value, 0x1p-24 * (2 * roundings(kind, at) * std::abs(value) + 2 * std::abs(at)));
      }
      ++cases;
    }
  }
  if (cases == 0) GTEST_SKIP() << "no recorded operator cases at " << HEEDFUL_GOLDENS;
  EXPECT_EQ(cases, 7);
}

}  // namespace
}  // namespace heedful
