#include "heedful/kernels/linear.h"

#include <gtest/gtest.h>

#include <cmath>

#include "heedful/core/error.h"
#include "heedful/kernels/gradient_support.h"
#include "heedful/kernels/matmul_reference.h"
#include "heedful/kernels/test_support.h"

namespace heedful {
namespace {

using testing_support::bits;
using testing_support::Inputs;

template <class T>
class LinearTest : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(LinearTest, Types);

// Three different extents, so that a transposed factor cannot pass for the right one.
TYPED_TEST(LinearTest, EveryResultIsItsChain) {
  using T = TypeParam;
  Inputs inputs(1);
  const auto x = inputs.tensor<T, 2>({5, 19}), w = inputs.tensor<T, 2>({19, 70}), dy = inputs.tensor<T, 2>({5, 70});
  const auto bias = inputs.tensor<T, 1>({70});
  const auto dw = inputs.tensor<T, 2>({19, 70}), dx = inputs.tensor<T, 2>({5, 19});
  const auto dbias = inputs.tensor<T, 1>({70});
  for (const int threads : {1, 3}) {
    const Context context(threads);
    Tensor<T, 2> y({5, 70}), plain({5, 70});
    linear_forward(context, y.view(), x, w, bias);
    linear_forward(context, plain.view(), x, w, {});
    auto new_dw = dw.copy(), new_dx = dx.copy(), assigned_dx = dx.copy();
    auto new_dbias = dbias.copy();
    linear_backward<T>(context, {new_dx, new_dw, new_dbias, true}, dy, x, w);
    linear_backward<T>(context, {.dx = assigned_dx, .dw = {}, .dbias = {}}, dy, x, w);
    for (Index o = 0; o < 70; ++o) {
      T sum = 0;
      for (Index n = 0; n < 5; ++n) {
        T chain = 0;
        for (Index i = 0; i < 19; ++i) chain = std::fma(x(n, i), w(i, o), chain);
        EXPECT_EQ(bits(plain(n, o)), bits(chain));
        EXPECT_EQ(bits(y(n, o)), bits(chain + bias(o)));
        sum += dy(n, o);
      }
      EXPECT_EQ(bits(new_dbias(o)), bits(dbias(o) + sum));
      for (Index i = 0; i < 19; ++i) {
        T chain = 0;
        for (Index n = 0; n < 5; ++n) chain = std::fma(x(n, i), dy(n, o), chain);
        EXPECT_EQ(bits(new_dw(i, o)), bits(dw(i, o) + chain));
      }
    }
    for (Index n = 0; n < 5; ++n) {
      for (Index i = 0; i < 19; ++i) {
        T chain = 0;
        for (Index o = 0; o < 70; ++o) chain = std::fma(dy(n, o), w(i, o), chain);
        EXPECT_EQ(bits(assigned_dx(n, i)), bits(chain));
        EXPECT_EQ(bits(new_dx(n, i)), bits(dx(n, i) + chain));
      }
    }
  }
}

TYPED_TEST(LinearTest, ThreadsAndStridesChangeNoBitOfTheBiasGradient) {
  using T = TypeParam;
  Inputs inputs(2);
  const auto dy = inputs.tensor<T, 2>({700, 333});
  Tensor<T, 2> columns({333, 700});
  for (Index n = 0; n < 700; ++n) {
    for (Index o = 0; o < 333; ++o) columns(o, n) = dy(n, o);
  }
  Tensor<T, 1> expected({333});
  bias_backward(Context(1), expected.view(), dy);
  for (const int threads : {1, 2, 5}) {
    Tensor<T, 1> rowwise({333}), columnwise({333});
    bias_backward(Context(threads), rowwise.view(), dy);
    bias_backward(Context(threads), columnwise.view(), columns.view().transpose());
    for (Index o = 0; o < 333; ++o) {
      EXPECT_EQ(bits(rowwise(o)), bits(expected(o)));
      EXPECT_EQ(bits(columnwise(o)), bits(expected(o)));
    }
  }
}

TEST(Linear, GradientsMatchDualsAndDifferences) {
  constexpr Index kRows = 3, kIn = 4, kOut = 5;
  Inputs inputs(3);
  const auto all = inputs.tensor<double, 1>({kRows * kIn + kIn * kOut + kOut});  // x, w, bias behind one another
  const auto dy = inputs.tensor<double, 2>({kRows, kOut});
  const std::vector<double> point(all.begin(), all.end()), dys(dy.begin(), dy.end());
  const auto x_of = [](auto* p) { return View<std::remove_pointer_t<decltype(p)>, 2>(p, {kRows, kIn}); };
  const auto w_of = [](auto* p) { return View<std::remove_pointer_t<decltype(p)>, 2>(p + kRows * kIn, {kIn, kOut}); };
  const auto bias_of = [](auto* p) {
    return View<std::remove_pointer_t<decltype(p)>, 1>(p + kRows * kIn + kIn * kOut, {kOut});
  };
  Tensor<double, 1> gradient(all.extents());
  linear_backward<double>(Context(), {x_of(gradient.data()), w_of(gradient.data()), bias_of(gradient.data())}, dy,
                          x_of(all.data()), w_of(all.data()));
  const auto on_duals = [&](const std::vector<Dual>& v) {
    std::vector<Dual> y(dys.size());
    matmul_reference<Dual>({y.data(), {kRows, kOut}}, x_of(v.data()), w_of(v.data()));
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += bias_of(v.data())[static_cast<Index>(i) % kOut];
    return y;
  };
  testing_support::expect_gradient(gradient, testing_support::dual_gradient(on_duals, point, dys), "dual");
  const auto kernel = [&](const std::vector<double>& v) {
    std::vector<double> y(dys.size());
    linear_forward<double>(Context(), {y.data(), {kRows, kOut}}, x_of(v.data()), w_of(v.data()), bias_of(v.data()));
    return y;
  };
  testing_support::expect_gradient(gradient, testing_support::difference_gradient(kernel, point, dys), "difference");
}

TEST(Linear, RefusesABiasOfAnotherWidth) {
  Tensor<float, 2> y({2, 3}), x({2, 4}), w({4, 3});
  Tensor<float, 1> bias({4});
  EXPECT_THROW(linear_forward(Context(), y.view(), x, w, bias), Error);
  EXPECT_THROW(bias_backward(Context(), bias.view(), y), Error);
}

}  // namespace
}  // namespace heedful
