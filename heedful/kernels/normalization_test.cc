#include "heedful/kernels/normalization.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "heedful/core/error.h"
#include "heedful/formats/golden_case.h"
#include "heedful/kernels/each_target.h"
#include "heedful/kernels/gradient_support.h"
#include "heedful/kernels/normalization_reference.h"
#include "heedful/kernels/test_support.h"

namespace heedful {
namespace {

using testing_support::bits;
using testing_support::Inputs;

template <class T>
constexpr double kUnit = std::numeric_limits<T>::epsilon() / 2;

// The error of x̂ = (x − μ)·r. The mean is a sum of C terms and a division: (C/16 + 6)·u·M|x|, and x − μ rounds once.
// That shift of every x − μ enters the variance squared only. r adds half the relative error of the mean square,
// (C/16 + 9)/2, a root and a division, and the product rounds once.
template <class T>
double normalized_tolerance(double normalized, double inverse, double mean_size, Index count) {
  const double unit = 1.01 * (kUnit<T> + 0x1p-53), length = static_cast<double>(count) / 16;
  const double shift = unit * (length + 6) * mean_size * inverse;
  return shift + std::abs(normalized) * (unit * (length / 2 + 9) + shift * shift / 2);
}

template <class T>
class NormalizationTest : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(NormalizationTest, Types);

TYPED_TEST(NormalizationTest, MatchesTheReferenceAtEveryMagnitudeAndMean) {
  using T = TypeParam;
  const Context context;
  for (const double magnitude : {1e-4, 1.0, 1e4}) {
    for (const double mean : {0.0, 3.0, 1000.0}) {  // in units of the magnitude
      for (const Index count : {1, 2, 3, 16, 17, 33, 384}) {
        Inputs inputs(1);
        auto x = inputs.tensor<T, 2>({4, count}, magnitude);
        for (T& element : x) element = static_cast<T>(element + static_cast<T>(mean * magnitude));
        const auto gain = inputs.tensor<T, 1>({count}, 2), bias = inputs.tensor<T, 1>({count});
        const auto wide = testing_support::widened(x.view());
        Tensor<double, 1> wide_gain({count}), wide_bias({count}), one({count}), zero({count});
        one.fill(1);
        for (Index c = 0; c < count; ++c) wide_gain(c) = gain(c), wide_bias(c) = bias(c);

        for (const bool layer : {true, false}) {
          Tensor<T, 2> y(x.extents()), normalized(x.extents());
          Tensor<T, 1> inverse({4});
          Tensor<double, 2> expected(x.extents()), expected_normalized(x.extents());
          if (layer) {
            layer_norm_forward<T>(context, y, {normalized, inverse}, x, {gain, bias}, 1e-5);
            layer_norm_reference<double>(expected, wide, wide_gain, wide_bias, 1e-5);
            layer_norm_reference<double>(expected_normalized, wide, one, zero, 1e-5);
          } else {
            rms_norm_forward<T>(context, y, {normalized, inverse}, x, gain, 1e-5);
            rms_norm_reference<double>(expected, wide, wide_gain, 1e-5);
            rms_norm_reference<double>(expected_normalized, wide, one, 1e-5);
          }
          for (Index n = 0; n < 4; ++n) {
            double size = 0;
            for (Index c = 0; c < count; ++c) size += std::abs(wide(n, c)) / static_cast<double>(count);
            for (Index c = 0; c < count; ++c) {
              const double tolerance =
                  normalized_tolerance<T>(expected_normalized(n, c), inverse(n), layer ? size : 0, count);
              EXPECT_NEAR(normalized(n, c), expected_normalized(n, c), tolerance);
              const double product = std::abs(wide_gain(c) * expected_normalized(n, c));
              EXPECT_NEAR(
                  y(n, c), expected(n, c),
                  tolerance * std::abs(wide_gain(c)) + 1.01 * kUnit<T> * (product + std::abs(expected(n, c))));
            }
          }
        }
      }
    }
  }
}

TYPED_TEST(NormalizationTest, KnownRows) {
  using T = TypeParam;
  Tensor<T, 2> x({2, 4}), y({2, 4}), normalized({2, 4});
  Tensor<T, 1> inverse({2});
  const T row[4] = {1, 1, 3, 3};  // mean 2, variance 1, mean square 5
  std::copy_n(row, 4, x.data());
  std::fill_n(x.data() + 4, 4, T{5});  // no deviation at all: ε keeps it finite
  layer_norm_forward<T>(Context(), y, {normalized, inverse}, x, {}, 0.0625);
  EXPECT_NEAR(inverse(0), 1 / std::sqrt(1.0625), 2 * kUnit<T>);  // a root and a division round
  for (Index c = 0; c < 4; ++c) {
    EXPECT_EQ(y(0, c), (c < 2 ? -1 : 1) * inverse(0));
    EXPECT_EQ(y(1, c), 0);
  }
  EXPECT_EQ(inverse(1), 4);
  rms_norm_forward<T>(Context(), y, {normalized, inverse}, x, {}, 4);
  EXPECT_EQ(inverse(0), T{1} / T{3});
  for (Index c = 0; c < 4; ++c) EXPECT_EQ(y(0, c), row[c] * inverse(0));
}

// Rows alone, threads, strides, targets and in place: the same bits, forward and backward, dgain and dbias included.
TYPED_TEST(NormalizationTest, NothingButTheRowsDecidesTheBits) {
  using T = TypeParam;
  constexpr Index kRows = 203, kColumns = 149;
  Inputs inputs(2);
  const auto x = inputs.tensor<T, 2>({kRows, kColumns}, 3), dy = inputs.tensor<T, 2>({kRows, kColumns});
  const auto gain = inputs.tensor<T, 1>({kColumns}), bias = inputs.tensor<T, 1>({kColumns});
  struct Results {
    View<T, 3> rows;   // y, x̂, dx of layer, then of rms
    View<T, 2> sums;   // dgain, dbias, dgain of rms
    View<T, 2> roots;  // r
  };
  const auto all = [&](const Context& context, const Results& out, Index begin, Index end) {
    const auto rows = [&](const auto& view) { return view.slice(0, begin, end); };
    layer_norm_forward<T>(context, rows(out.rows[0]), {rows(out.rows[1]), rows(out.roots[0])}, rows(x.view()),
                          {gain, bias}, 1e-5);
    layer_norm_backward<T>(context, {rows(out.rows[2]), out.sums[0], out.sums[1]}, rows(dy.view()),
                           {rows(out.rows[1]), rows(out.roots[0])}, gain);
    rms_norm_forward<T>(context, rows(out.rows[3]), {rows(out.rows[4]), rows(out.roots[1])}, rows(x.view()), gain,
                        1e-5);
    rms_norm_backward<T>(context, {rows(out.rows[5]), out.sums[2], {}}, rows(dy.view()),
                         {rows(out.rows[4]), rows(out.roots[1])}, gain);
  };
  Tensor<T, 3> rows({6, kRows, kColumns});
  Tensor<T, 2> sums({3, kColumns}), roots({2, kRows});
  const Results batch{rows, sums, roots};
  all(Context(1), batch, 0, kRows);
  const auto expect_same = [&](const Results& other, bool with_sums) {
    Index different = 0;
    for (Index i = 0; i < 6; ++i) {
      for (Index n = 0; n < kRows; ++n) {
        for (Index c = 0; c < kColumns; ++c) different += bits(batch.rows(i, n, c)) != bits(other.rows(i, n, c));
      }
    }
    for (Index i = 0; with_sums && i < 3; ++i) {
      for (Index c = 0; c < kColumns; ++c) different += bits(batch.sums(i, c)) != bits(other.sums(i, c));
    }
    EXPECT_EQ(different, 0);
  };
  {
    Tensor<T, 3> again(rows.extents());
    Tensor<T, 2> other_sums(sums.extents()), other_roots(roots.extents());
    const Results alone{again, other_sums, other_roots};
    for (Index n = 0; n < kRows; ++n) all(Context(1), alone, n, n + 1);
    expect_same(alone, false);
    other_sums.fill(0);
    all(Context(3), alone, 0, kRows);
    expect_same(alone, true);
  }
  Tensor<T, 3> columns({6, kColumns, kRows});
  Tensor<T, 2> strided_sums({kColumns, 3}), strided_roots({kRows, 2});
  const Results strided{columns.view().permute({0, 2, 1}), strided_sums.view().transpose(),
                        strided_roots.view().transpose()};
  all(Context(1), strided, 0, kRows);
  expect_same(strided, true);

  for_each_target([&](const char* target) {
    SCOPED_TRACE(target);
    Tensor<T, 3> again(rows.extents());
    Tensor<T, 2> other_sums(sums.extents()), other_roots(roots.extents());
    const Results here{again, other_sums, other_roots};
    all(Context(1), here, 0, kRows);
    expect_same(here, true);
  });

  auto y = x.copy(), dx = dy.copy();  // in place, and without a record
  layer_norm_forward<T>(Context(), y, {}, y, {gain, bias}, 1e-5);
  layer_norm_backward<T>(Context(), {dx, {}, {}}, dx, {batch.rows[1], batch.roots[0]}, gain);
  for (Index n = 0; n < kRows; ++n) {
    for (Index c = 0; c < kColumns; ++c) {
      ASSERT_EQ(bits(y(n, c)), bits(batch.rows(0, n, c)));
      ASSERT_EQ(bits(dx(n, c)), bits(batch.rows(2, n, c)));
    }
  }
}

// x, gain and bias behind one another, as one vector of unknowns.
TEST(Normalization, GradientsMatchDualsAndDifferences) {
  const Context context;
  for (const Extents<2>& shape : {Extents<2>{3, 1}, {2, 2}, {3, 5}, {1, 33}}) {
    const auto [rows, count] = shape;
    for (const double epsilon : {0.0, 1e-5, 0.3}) {
      if (count == 1 && epsilon == 0) continue;  // x̂ of a single number is 0/0 there
      Inputs inputs(3);
      const auto all = inputs.tensor<double, 1>({rows * count + 2 * count}, 2);
      const auto dy = inputs.tensor<double, 2>(shape);
      const std::vector<double> point(all.begin(), all.end()), dys(dy.begin(), dy.end());
      const auto x_of = [&](auto* p) { return View<std::remove_pointer_t<decltype(p)>, 2>(p, shape); };
      const auto vector_of = [&](auto* p, Index which) {
        return View<std::remove_pointer_t<decltype(p)>, 1>(p + shape[0] * shape[1] + which * shape[1], {shape[1]});
      };
      for (const bool layer : {true, false}) {
        Tensor<double, 2> y(shape), normalized(shape);
        Tensor<double, 1> inverse({rows}), gradient(all.extents());
        const NormalizationRecord<double> record{normalized, inverse};
        const auto gain = vector_of(all.data(), 0);
        const auto forward = [&](View<double, 2> out, const double* p, const NormalizationRecord<double>& saved) {
          if (layer) {
            layer_norm_forward(context, out, saved, x_of(p), {vector_of(p, 0), vector_of(p, 1)}, epsilon);
          } else {
            rms_norm_forward(context, out, saved, x_of(p), vector_of(p, 0), epsilon);
          }
        };
        forward(y, all.data(), record);
        const NormalizationRecord<const double> read{normalized, inverse};
        if (layer) {
          layer_norm_backward<double>(
              context, {x_of(gradient.data()), vector_of(gradient.data(), 0), vector_of(gradient.data(), 1)}, dy,
              read, gain);
        } else {
          rms_norm_backward<double>(context, {x_of(gradient.data()), vector_of(gradient.data(), 0), {}}, dy, read,
                                    gain);
        }
        // The terms of dx before they cancel: r·max|g|·(2 + max x̂²).
        double largest_root = 0, largest = 0, largest_normalized = 0;
        for (const double r : inverse) largest_root = std::max(largest_root, r);
        for (const double h : normalized) largest_normalized = std::max(largest_normalized, std::abs(h));
        for (Index i = 0; i < dy.size(); ++i) {
          largest = std::max(largest, std::abs(dys[static_cast<std::size_t>(i)] * gain[i % count]));
        }
        const double scale = largest_root * largest * (2 + largest_normalized * largest_normalized) + 1;
        const auto on_duals = [&](const std::vector<Dual>& v) {
          std::vector<Dual> out(dys.size());
          if (layer) {
            layer_norm_reference<Dual>({out.data(), shape}, x_of(v.data()), vector_of(v.data(), 0),
                                       vector_of(v.data(), 1), epsilon);
          } else {
            rms_norm_reference<Dual>({out.data(), shape}, x_of(v.data()), vector_of(v.data(), 0), epsilon);
          }
          return out;
        };
        testing_support::expect_gradient(gradient, testing_support::dual_gradient(on_duals, point, dys, scale),
                                         layer ? "layer, dual" : "rms, dual");
        const auto kernel = [&](const std::vector<double>& v) {
          std::vector<double> out(dys.size());
          forward({out.data(), shape}, v.data(), {});
          return out;
        };
        testing_support::expect_gradient(gradient, testing_support::difference_gradient(kernel, point, dys),
                                         layer ? "layer, difference" : "rms, difference");
      }
    }
  }
}

TEST(Normalization, ParameterGradientsAddAndMayBeLeftOut) {
  Inputs inputs(4);
  const auto dy = inputs.tensor<double, 2>({3, 5}), normalized = inputs.tensor<double, 2>({3, 5});
  Tensor<double, 2> dx({3, 5}), again({3, 5});
  Tensor<double, 1> inverse({3}), dgain({5}), dbias({5}), once({5}), bias_once({5});
  inverse.fill(1), dgain.fill(100), dbias.fill(100);
  layer_norm_backward<double>(Context(), {dx, dgain, dbias}, dy, {normalized, inverse}, {});
  layer_norm_backward<double>(Context(), {again, {}, {}}, dy, {normalized, inverse}, {});
  layer_norm_backward<double>(Context(), {{}, once, bias_once}, dy, {normalized, inverse}, {});
  for (Index i = 0; i < dx.size(); ++i) EXPECT_EQ(dx.data()[i], again.data()[i]);
  for (Index c = 0; c < 5; ++c) {
    EXPECT_EQ(dgain(c), 100 + once(c));
    EXPECT_EQ(dbias(c), 100 + bias_once(c));
  }
}

TEST(Normalization, RefusesWhatDoesNotFit) {
  Tensor<float, 2> x({2, 3}), y({2, 3}), none({2, 0}), other({3, 2});
  Tensor<float, 1> two({2}), three({3});
  const Context context;
  EXPECT_NO_THROW(layer_norm_forward<float>(context, y, {{}, two}, x, {three, three}, 1e-5));
  EXPECT_THROW(layer_norm_forward<float>(context, y, {{}, three}, x, {}, 1e-5), Error);
  EXPECT_THROW(layer_norm_forward<float>(context, y, {}, x, {two, {}}, 1e-5), Error);
  EXPECT_THROW(layer_norm_forward<float>(context, y, {}, x, {{}, two}, 1e-5), Error);
  EXPECT_THROW(layer_norm_forward<float>(context, y, {}, other, {}, 1e-5), Error);
  EXPECT_THROW(rms_norm_forward<float>(context, none, {}, none, {}, 1e-5), Error);
  EXPECT_THROW(rms_norm_forward<float>(context, y, {}, x, {}, -1), Error);
  EXPECT_THROW(rms_norm_backward<float>(context, {y, {}, three}, x, {x, two}, {}), Error);
  EXPECT_THROW(layer_norm_backward<float>(context, {y, {}, {}}, x, {other, two}, {}), Error);
}

// An axis means "this one and all behind it": rows of their product.
TEST(Normalization, OnnxCases) {
  int cases = 0;
  for (const char* op : {"LayerNormalization", "RMSNormalization"}) {
    for (const auto& path : golden_cases(op)) {
      const GoldenCase golden = load_golden_case(path);
      SCOPED_TRACE(golden.name);
      const Array& input = *golden.input(0);
      const Index rank = std::ssize(input.shape), axis = (golden.attribute("axis", Index{-1}) + rank) % rank;
      Index rows = 1, count = 1;
      for (Index i = 0; i < rank; ++i) (i < axis ? rows : count) *= input.shape[static_cast<std::size_t>(i)];
      auto x = to_vector<float>(input, "X"), gain = to_vector<float>(*golden.input(1), "W");
      const auto expected = to_vector<float>(*golden.output(0), "Y");
      const double epsilon = golden.attribute("epsilon", 1e-5);
      const View<const float, 2> in(x.data(), {rows, count});
      Tensor<float, 2> y({rows, count});
      Tensor<float, 1> inverse({rows});
      const bool layer = op[0] == 'L';
      if (layer) {
        auto bias = to_vector<float>(*golden.input(2), "B");
        layer_norm_forward<float>(Context(), y, {{}, inverse}, in,
                                  {View<float, 1>(gain.data(), {count}), View<float, 1>(bias.data(), {count})},
                                  epsilon);
        const auto roots = to_vector<float>(*golden.output(2), "InvStdDev");
        for (Index n = 0; n < rows; ++n) {
          const float root = roots[static_cast<std::size_t>(n)];
          EXPECT_NEAR(inverse(n), root, 2 * normalized_tolerance<float>(root, root, 1, count));
        }
      } else {
        rms_norm_forward<float>(Context(), y, {{}, inverse}, in, View<float, 1>(gain.data(), {count}), epsilon);
      }
      // Twice our own error, for the recording ran in float too; every |x| here is below 4 and so is every |bias|.
      for (Index i = 0; i < y.size(); ++i) {
        const double by = std::abs(gain[static_cast<std::size_t>(i % count)]), value = y.data()[i];
        const double root = inverse(i / count);
        EXPECT_NEAR(value, expected[static_cast<std::size_t>(i)],
                    2 * (by * normalized_tolerance<float>(4 * root, root, 4, count) +
                         0x1p-24 * (4 * by * root + std::abs(value) + 4)));
      }
      ++cases;
    }
  }
  if (cases == 0) GTEST_SKIP() << "no recorded operator cases at " << HEEDFUL_GOLDENS;
  EXPECT_EQ(cases, 30);
}

}  // namespace
}  // namespace heedful
