#include "heedful/kernels/matmul.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "heedful/core/error.h"
#include "heedful/kernels/each_target.h"
#include "heedful/kernels/matmul_reference.h"
#include "heedful/kernels/test_support.h"

namespace heedful {
namespace {

using testing_support::bits;
using testing_support::Inputs;

// The ways a matrix can lie in memory. All of them leave a margin that nobody may touch.
enum class Layout { rows, padded_rows, columns, spread, far_rows };
constexpr Layout kLayouts[] = {Layout::rows, Layout::padded_rows, Layout::columns, Layout::spread};

template <class T>
struct Matrix {
  Matrix(Index rows, Index columns, Layout layout) : storage({(rows + 2) * row_memory(columns, layout) + 8}) {
    Extents<2> strides{columns, 1};
    if (layout == Layout::padded_rows) strides = {columns + 3, 1};
    if (layout == Layout::columns) strides = {1, rows + 1};
    if (layout == Layout::spread) strides = {2 * columns + 3, 2};
    if (layout == Layout::far_rows) strides = {kFar, 1};
    storage.fill(std::numeric_limits<T>::quiet_NaN());
    view = View<T, 2>(storage.data() + 4, {rows, columns}, strides);
  }
  void fill(Inputs& inputs, double magnitude = 1) const {
    for (Index i = 0; i < view.extent(0); ++i) {
      for (Index j = 0; j < view.extent(1); ++j) view(i, j) = static_cast<T>(inputs.number(magnitude));
    }
  }
  // 70 rows so far apart reach over more than the 8 MiB from which on they are packed.
  static constexpr Index kFar = (Index{9} << 20) / 70 / 4;
  static Index row_memory(Index columns, Layout layout) {
    return layout == Layout::far_rows ? kFar : (columns + 3) * 2;
  }
  Tensor<T, 1> storage;
  View<T, 2> view;
};

template <class T>
T chain(const View<T, 2>& a, const View<T, 2>& b, Index m, Index n) {
  T sum = 0;
  for (Index k = 0; k < a.extent(1); ++k) sum = std::fma(a(m, k), b(k, n), sum);
  return sum;
}

// Every element of c has the bits of its chain, and no other number in c's memory has changed.
template <class T>
void expect_chains(const Context& context, const Matrix<T>& a, const Matrix<T>& b, Matrix<T>& c,
                   MatmulOptions<T> options) {
  Tensor<T, 1> expected_storage = c.storage.copy();
  const View<T, 2> expected(expected_storage.data() + 4, c.view.extents(), c.view.strides());
  for (Index m = 0; m < expected.extent(0); ++m) {
    for (Index n = 0; n < expected.extent(1); ++n) {
      const T value = chain(a.view, b.view, m, n);
      T& element = expected(m, n);
      element = options.accumulate ? element + value : value;
      if (!options.bias.empty()) element += options.bias[n];
      if (!options.residual.empty()) element += options.residual(m, n);
    }
  }
  matmul<T>(context, c.view, a.view, b.view, options);
  Index different = 0;
  for (Index i = 0; i < c.storage.size(); ++i) different += bits(c.storage(i)) != bits(expected_storage(i));
  ASSERT_EQ(different, 0) << c.view.extent(0) << "x" << c.view.extent(1) << "x" << a.view.extent(1);
}

template <class T>
class MatmulTest : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(MatmulTest, Types);

TYPED_TEST(MatmulTest, EveryElementIsItsChainForEveryShape) {
  const Context context;
  for_each_target([&](const char* target) {
    SCOPED_TRACE(target);
    Inputs inputs(1);
    for (const Index m : {0, 1, 2, 3, 4, 5, 7, 11, 12, 13, 25, 49, 100}) {
      for (const Index n : {0, 1, 2, 3, 7, 8, 12, 15, 16, 17, 31, 33, 48, 65}) {
        for (const Index k : {0, 1, 2, 5, 33}) {
          Matrix<TypeParam> a(m, k, Layout::rows), b(k, n, Layout::rows), c(m, n, Layout::rows);
          a.fill(inputs), b.fill(inputs), c.fill(inputs);
          const Matrix<TypeParam> bias(1, n, Layout::rows), residual(m, n, Layout::padded_rows);
          bias.fill(inputs), residual.fill(inputs);
          MatmulOptions<TypeParam> options{.accumulate = (m + n + k) % 2 == 1};
          if ((m + k) % 3 > 0) options.bias = View<const TypeParam, 1>(bias.view.data(), {n});
          if ((m + n) % 3 > 0) options.residual = residual.view;
          expect_chains(context, a, b, c, options);
          if (this->HasFatalFailure()) return;
        }
      }
    }
  });
}

TYPED_TEST(MatmulTest, EveryElementIsItsChainForEveryLayout) {
  const Context context;
  for_each_target([&](const char* target) {
    SCOPED_TRACE(target);
    Inputs inputs(2);
    for (const Extents<3>& shape :
         {Extents<3>{1, 37, 19}, {13, 37, 19}, {37, 13, 40}, {101, 5, 9}, {101, 70, 67}, {9, 1, 21}, {1, 1, 21}}) {
      for (const Layout of_a : kLayouts) {
        for (const Layout of_b : kLayouts) {
          for (const Layout of_c : kLayouts) {
            for (const bool accumulate : {false, true}) {
              const auto [m, n, k] = shape;
              Matrix<TypeParam> a(m, k, of_a), b(k, n, of_b), c(m, n, of_c);
              a.fill(inputs), b.fill(inputs), c.fill(inputs);
              expect_chains(context, a, b, c, {.accumulate = accumulate});
              const Matrix<TypeParam> bias(1, n, of_a), residual(m, n, of_b);  // of any layout
              bias.fill(inputs), residual.fill(inputs);
              expect_chains(context, a, b, c, {accumulate, bias.view[0], residual.view});
              if (this->HasFatalFailure()) return;
            }
          }
        }
      }
    }
  });
}

// Both factors are packed, in whole and ragged panels, whichever way they lie.
TYPED_TEST(MatmulTest, PackingChangesNoBit) {
  const auto [m, n, k] = Extents<3>{301, 150, 70};
  for_each_target([&](const char* target) {
    SCOPED_TRACE(target);
    Inputs inputs(6);
    for (const Layout of_a : kLayouts) {
      for (const Layout of_b : {Layout::rows, Layout::far_rows, Layout::columns, Layout::spread}) {
        Matrix<TypeParam> a(m, k, of_a), b(k, n, of_b), c(m, n, Layout::rows);
        a.fill(inputs), b.fill(inputs);
        expect_chains(Context(), a, b, c, {});
        if (this->HasFatalFailure()) return;
      }
    }
  });
}

// Large enough to be shared out, with b packed or not and rows of a taken in several blocks.
TYPED_TEST(MatmulTest, ThreadsChangeNoBit) {
  Inputs inputs(3);
  for (const Extents<3>& shape : {Extents<3>{400, 130, 90}, {1, 1500, 1500}, {5, 2000, 300}, {1500, 33, 2100}}) {
    const auto [m, n, k] = shape;
    for (const Layout of_b : {Layout::rows, Layout::columns}) {
      Matrix<TypeParam> a(m, k, Layout::rows), b(k, n, of_b), alone(m, n, Layout::rows);
      a.fill(inputs), b.fill(inputs), alone.fill(inputs);
      Matrix<TypeParam> start(m, n, Layout::rows);
      start.storage = alone.storage.copy();
      const Matrix<TypeParam> bias(1, n, Layout::rows), residual(m, n, Layout::rows);
      bias.fill(inputs), residual.fill(inputs);
      expect_chains(Context(1), a, b, alone, {true, bias.view[0], residual.view});
      for (const int threads : {2, 3, 7}) {
        Matrix<TypeParam> together(m, n, Layout::rows);
        std::copy(start.storage.begin(), start.storage.end(), together.storage.begin());
        matmul<TypeParam>(Context(threads), together.view, a.view, b.view, {true, bias.view[0], residual.view});
        Index different = 0;
        for (Index i = 0; i < alone.storage.size(); ++i) {
          different += bits(alone.storage(i)) != bits(together.storage(i));
        }
        EXPECT_EQ(different, 0) << threads << " threads";
      }
    }
  }
}

TYPED_TEST(MatmulTest, NonFiniteNumbersStayInTheirRowsAndColumns) {
  const Context context;
  for_each_target([&](const char* target) {
    SCOPED_TRACE(target);
    Inputs inputs(4);
    Matrix<TypeParam> a(30, 9, Layout::rows), b(9, 41, Layout::rows), c(30, 41, Layout::rows);
    a.fill(inputs), b.fill(inputs);
    a.view(17, 3) = std::numeric_limits<TypeParam>::quiet_NaN();
    b.view(8, 40) = std::numeric_limits<TypeParam>::infinity();
    matmul<TypeParam>(context, c.view, a.view, b.view);
    for (Index m = 0; m < 30; ++m) {
      for (Index n = 0; n < 41; ++n) EXPECT_EQ(std::isfinite(c.view(m, n)), m != 17 && n != 40) << m << " " << n;
    }
  });
}

// A chain of K fused multiply-adds has K roundings, each of at most u times a running sum that is itself at most
// Σ|a·b| up to second order; the reference in double has 2K of its own.
TYPED_TEST(MatmulTest, ErrorIsAtMostTheChainsOwn) {
  const Context context;
  const double unit = std::numeric_limits<TypeParam>::epsilon() / 2;
  for (const double magnitude : {1e-4, 1.0, 1e4}) {
    for (const Index k : {1, 12, 384, 3000}) {
      Inputs inputs(5);
      Matrix<TypeParam> a(14, k, Layout::rows), b(k, 35, Layout::rows), c(14, 35, Layout::rows);
      a.fill(inputs, magnitude), b.fill(inputs, magnitude);
      matmul<TypeParam>(context, c.view, a.view, b.view);
      const auto wide_a = testing_support::widened(a.view), wide_b = testing_support::widened(b.view);
      Tensor<double, 2> reference({14, 35});
      matmul_reference<double>(reference, wide_a, wide_b);
      for (Index m = 0; m < 14; ++m) {
        for (Index n = 0; n < 35; ++n) {
          double absolute = 0;
          for (Index i = 0; i < k; ++i) absolute += std::abs(wide_a(m, i) * wide_b(i, n));
          const double roundings = static_cast<double>(k) * (unit + 2 * 0x1p-53) * 1.001;
          EXPECT_LE(std::abs(static_cast<double>(c.view(m, n)) - reference(m, n)), roundings * absolute);
        }
      }
    }
  }
}

TEST(Matmul, RefusesShapesThatDoNotFit) {
  const Context context;
  Tensor<float, 2> c({2, 3}), a({2, 4}), b({4, 3}), narrow({4, 2}), low({3, 4});
  EXPECT_NO_THROW(matmul(context, c.view(), a, b));
  EXPECT_THROW(matmul(context, c.view(), a, narrow), Error);
  EXPECT_THROW(matmul(context, c.view(), low, b), Error);
  EXPECT_THROW(matmul(context, c.view(), a, low), Error);
}

}  // namespace
}  // namespace heedful
