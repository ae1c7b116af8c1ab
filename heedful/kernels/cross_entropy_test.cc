#include "heedful/kernels/cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "heedful/core/error.h"
#include "heedful/formats/golden_case.h"
#include "heedful/kernels/cross_entropy_reference.h"
#include "heedful/kernels/each_target.h"
#include "heedful/kernels/gradient_support.h"
#include "heedful/kernels/test_support.h"

namespace heedful {
namespace {

using testing_support::bits;
using testing_support::Inputs;

template <class T>
constexpr double kUnit = std::numeric_limits<T>::epsilon() / 2;

struct Problem {
  std::vector<Index> targets;
  Tensor<double, 1> weights;
};

// Weights 0, 1/2, 1, … so that they are exact in float; every third row does not count.
Problem problem(Inputs& inputs, Index rows, Index vocabulary) {
  Problem result{{}, Tensor<double, 1>({rows})};
  for (Index n = 0; n < rows; ++n) {
    result.targets.push_back(inputs.index(vocabulary));
    result.weights(n) = static_cast<double>((n + 1) % 3) / 2;
  }
  return result;
}

template <class T>
class CrossEntropyTest : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(CrossEntropyTest, Types);

// exp(x − m): the difference rounds (|x − m|·u) and exp is off by 4u; the sum has V/16 + 5 additions, and Σ p·|x − m|
// is at most log V. So log Σ is off by (log V + V/16 + 9)·u absolutely; what is double adds (N + V/16 + 8)·2⁻⁵³
// relatively. A gradient entry adds the factor's cast, a product, −1 and its cast.
TYPED_TEST(CrossEntropyTest, MatchesTheReferenceAtEveryMagnitude) {
  using T = TypeParam;
  for (const double magnitude : {0.0, 1e-3, 1.0, 30.0, 1e4}) {
    for (const Index vocabulary : {1, 2, 3, 17, 65, 500}) {
      Inputs inputs(1);
      const Index rows = 7;
      const auto logits = inputs.tensor<T, 2>({rows, vocabulary}, magnitude);
      const Problem given = problem(inputs, rows, vocabulary);
      Tensor<T, 1> weights({rows});
      for (Index n = 0; n < rows; ++n) weights(n) = static_cast<T>(given.weights(n));
      Tensor<T, 2> dlogits(logits.extents());
      Tensor<double, 1> losses({rows});
      const double loss = cross_entropy<T>(Context(), {dlogits, losses}, logits, given.targets, weights);
      EXPECT_EQ(loss, cross_entropy<T>(Context(), {}, logits, given.targets, weights));  // asking changes nothing

      const auto wide = testing_support::widened(logits.view());
      const double length = std::log(static_cast<double>(vocabulary)) + static_cast<double>(vocabulary) / 16 + 9;
      const double expected = cross_entropy_reference<double>(wide, given.targets, given.weights);
      const double in_double = (static_cast<double>(rows) + static_cast<double>(vocabulary) + 16) * 0x1p-53;
      EXPECT_NEAR(loss, expected, 1.01 * kUnit<T> * length + in_double * (expected + 2 * magnitude));
      for (Index n = 0; n < rows; ++n) {
        if (weights(n) == 0) continue;
        Tensor<double, 1> only({rows});
        only(n) = 1;
        EXPECT_NEAR(losses(n), cross_entropy_reference<double>(wide, given.targets, only),
                    1.01 * kUnit<T> * length + in_double * (2 * magnitude + length));
        const double scale = given.weights(n) / 6.5 * 1;  // weights are 1/2, 1, 0, 1/2, 1, 0, 1/2
        double maximum = wide(n, 0), total = 0;
        for (Index v = 0; v < vocabulary; ++v) maximum = std::max(maximum, wide(n, v));
        for (Index v = 0; v < vocabulary; ++v) total += std::exp(wide(n, v) - maximum);
        for (Index v = 0; v < vocabulary; ++v) {
          const double p = std::exp(wide(n, v) - maximum) / total;
          const double hit = v == given.targets[static_cast<std::size_t>(n)] ? 1 : 0;
          const double roundings = p * (maximum - wide(n, v) + 4 + length + 2) + 3 * std::abs(p - hit);
          EXPECT_NEAR(dlogits(n, v), (p - hit) * scale * 6.5 / 3.5,
                      1.01 * (kUnit<T> + 0x1p-52) * scale * 6.5 / 3.5 * roundings +
                          static_cast<double>(std::numeric_limits<T>::min()));
        }
      }
    }
  }
}

TYPED_TEST(CrossEntropyTest, KnownRows) {
  using T = TypeParam;
  Tensor<T, 2> logits({3, 2}), dlogits({3, 2});
  Tensor<double, 1> losses({3});
  logits(0, 0) = 5, logits(0, 1) = 5;           // log 2
  logits(1, 0) = 10000, logits(1, 1) = -10000;  // certain and wrong
  logits(2, 0) = 10000, logits(2, 1) = -10000;  // certain and right
  const double loss = cross_entropy<T>(Context(), {dlogits, losses}, logits, std::vector<Index>{0, 1, 0}, {});
  EXPECT_DOUBLE_EQ(losses(0), std::log(2.0));
  EXPECT_EQ(losses(1), 20000);
  EXPECT_EQ(losses(2), 0);
  EXPECT_DOUBLE_EQ(loss, (std::log(2.0) + 20000) / 3);
  const T third = static_cast<T>(1.0 / 3);
  EXPECT_EQ(dlogits(0, 0), T{-0.5} * third);
  EXPECT_EQ(dlogits(1, 0), third);
  EXPECT_EQ(dlogits(1, 1), -third);
  EXPECT_EQ(dlogits(2, 0), 0);
}

// A row that is all but certain has a loss and a gradient far below the rounding of the 1 that dominates its sum; both
// keep their digits, in float as in double. exp is off by 4u, the other steps by four roundings.
TYPED_TEST(CrossEntropyTest, KeepsTinyLossesAndGradients) {
  using T = TypeParam;
  Tensor<T, 2> logits({1, 3}), dlogits({1, 3});
  logits(0, 0) = 50, logits(0, 1) = 10;
  const double loss = cross_entropy<T>(Context(), {dlogits, {}}, logits, std::vector<Index>{0}, {});
  const double rest = std::exp(-40.0) + std::exp(-50.0);
  EXPECT_NEAR(loss, rest, rest * 8 * kUnit<T>);
  EXPECT_NEAR(dlogits(0, 0), -rest, rest * 8 * kUnit<T>);
  EXPECT_NEAR(dlogits(0, 1), std::exp(-40.0), rest * 8 * kUnit<T>);
}

TYPED_TEST(CrossEntropyTest, RowsOfWeightZeroAreNeverRead) {
  using T = TypeParam;
  Inputs inputs(2);
  auto logits = inputs.tensor<T, 2>({4, 5});
  Tensor<T, 2> plain({2, 5}), plain_gradient({2, 5}), dlogits({4, 5});
  for (Index v = 0; v < 5; ++v) {
    plain(0, v) = logits(0, v), plain(1, v) = logits(3, v);
    logits(1, v) = std::numeric_limits<T>::quiet_NaN();
    logits(2, v) = std::numeric_limits<T>::infinity();
  }
  Tensor<T, 1> weights({4});
  weights(0) = 1, weights(3) = 2;
  Tensor<T, 1> plain_weights({2});
  plain_weights(0) = 1, plain_weights(1) = 2;
  dlogits.fill(9);
  Tensor<double, 1> losses({4});
  losses.fill(9);
  const double loss =
      cross_entropy<T>(Context(), {dlogits, losses}, logits, std::vector<Index>{2, -100, 1 << 30, 4}, weights);
  const double expected =
      cross_entropy<T>(Context(), {plain_gradient, {}}, plain, std::vector<Index>{2, 4}, plain_weights);
  EXPECT_EQ(loss, expected);  // padding moves no bit
  EXPECT_EQ(losses(1), 0);
  EXPECT_EQ(losses(2), 0);
  for (Index v = 0; v < 5; ++v) {
    EXPECT_EQ(dlogits(0, v), plain_gradient(0, v));
    EXPECT_EQ(dlogits(1, v), 0);
    EXPECT_EQ(dlogits(2, v), 0);
    EXPECT_EQ(dlogits(3, v), plain_gradient(1, v));
  }
}

TEST(CrossEntropy, GradientsMatchDualsAndDifferences) {
  for (const Extents<2>& shape : {Extents<2>{3, 1}, {4, 2}, {5, 9}}) {
    Inputs inputs(3);
    const auto logits = inputs.tensor<double, 2>(shape, 3);
    const Problem given = problem(inputs, shape[0], shape[1]);
    Tensor<double, 2> dlogits(shape);
    cross_entropy<double>(Context(), {dlogits, {}}, logits, given.targets, given.weights);
    const std::vector<double> point(logits.begin(), logits.end()), one{1};
    const auto on_duals = [&](const std::vector<Dual>& v) {
      return std::vector<Dual>{
          cross_entropy_reference<Dual>(View<const Dual, 2>(v.data(), shape), given.targets, given.weights)};
    };
    testing_support::expect_gradient(dlogits, testing_support::dual_gradient(on_duals, point, one, 1), "dual");
    const auto kernel = [&](const std::vector<double>& v) {
      return std::vector<double>{
          cross_entropy<double>(Context(), {}, View<const double, 2>(v.data(), shape), given.targets, given.weights)};
    };
    testing_support::expect_gradient(dlogits, testing_support::difference_gradient(kernel, point, one), "difference");
  }
}

TYPED_TEST(CrossEntropyTest, ThreadsTargetsStridesAndPlaceChangeNoBit) {
  using T = TypeParam;
  constexpr Index kRows = 400, kVocabulary = 151;
  Inputs inputs(4);
  auto logits = inputs.tensor<T, 2>({kRows, kVocabulary}, 4);
  std::vector<Index> targets;
  for (Index n = 0; n < kRows; ++n) targets.push_back(inputs.index(kVocabulary));
  Tensor<T, 2> dlogits(logits.extents()), columns({kVocabulary, kRows}), threads(logits.extents());
  Tensor<double, 1> losses({kRows}), other({kRows});
  const double loss = cross_entropy<T>(Context(1), {dlogits, losses}, logits, targets, {});
  EXPECT_EQ(loss, cross_entropy<T>(Context(3), {threads, other}, logits, targets, {}));
  EXPECT_EQ(loss, cross_entropy<T>(Context(2), {columns.view().transpose(), {}}, logits, targets, {}));
  for_each_target([&](const char* target) {
    SCOPED_TRACE(target);
    Tensor<T, 2> here(logits.extents());
    EXPECT_EQ(loss, cross_entropy<T>(Context(1), {here, {}}, logits, targets, {}));
    for (Index i = 0; i < here.size(); ++i) ASSERT_EQ(bits(here.data()[i]), bits(dlogits.data()[i]));
  });
  EXPECT_EQ(loss, cross_entropy<T>(Context(1), {logits, {}}, logits, targets, {}));
  Index different = 0;
  for (Index n = 0; n < kRows; ++n) {
    different += losses(n) != other(n);
    for (Index v = 0; v < kVocabulary; ++v) {
      const auto value = bits(dlogits(n, v));
      different += value != bits(threads(n, v)) || value != bits(columns(v, n)) || value != bits(logits(n, v));
    }
  }
  EXPECT_EQ(different, 0);
}

TEST(CrossEntropy, RefusesWhatHasNoMeaning) {
  Tensor<double, 2> logits({2, 3}), other({3, 2});
  Tensor<double, 1> weights({2}), three({3});
  const auto loss = [&](std::vector<Index> targets) {
    return cross_entropy<double>(Context(), {}, logits, targets, weights);
  };
  EXPECT_THROW(loss({0, 1}), Error);  // Σw = 0
  weights(0) = 1;
  EXPECT_NO_THROW(loss({0, 7}));
  EXPECT_THROW(loss({3, 0}), Error);
  EXPECT_THROW(loss({-1, 0}), Error);
  EXPECT_THROW(loss({0}), Error);
  weights(1) = -1;
  EXPECT_THROW(loss({0, 0}), Error);
  weights(1) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(loss({0, 0}), Error);
  const std::vector<Index> targets{0, 0};
  EXPECT_THROW(cross_entropy<double>(Context(), {}, logits, targets, three), Error);
  EXPECT_THROW(cross_entropy<double>(Context(), {other, {}}, logits, targets, {}), Error);
  EXPECT_THROW(cross_entropy<double>(Context(), {{}, three}, logits, targets, {}), Error);
  EXPECT_THROW(cross_entropy<double>(Context(), {}, Tensor<double, 2>({0, 3}), {}, {}), Error);
}

// ONNX puts the classes on axis 1 and weighs classes; here rows are (axis 0, axes from 2) and weights go by row: the
// weight of the target's class, 0 where the target is ignore_index. Its NegativeLogLikelihoodLoss takes logarithms as
// they are, so each of its losses is ours less the log-sum-exp of the row.
TEST(CrossEntropy, OnnxCases) {
  int cases = 0;
  for (const char* op : {"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"}) {
    for (const auto& path : golden_cases(op)) {
      const GoldenCase golden = load_golden_case(path);
      SCOPED_TRACE(golden.name);
      const bool normalizes = op[0] == 'S';
      const Array& input = *golden.input(0);
      const Index batch = input.shape[0], classes = input.shape[1], inner = input.size() / batch / classes;
      const Index rows = batch * inner;
      auto x = to_vector<float>(input, "x");
      auto targets = to_vector<Index>(*golden.input(1), "target");
      const auto expected = to_vector<float>(*golden.output(0), "loss");
      std::vector<float> by_class(static_cast<std::size_t>(classes), 1.0f);
      if (golden.input(2) != nullptr) by_class = to_vector<float>(*golden.input(2), "weight");
      const bool ignores = golden.attributes.contains("ignore_index");
      const Index ignored = golden.attribute("ignore_index", Index{0});

      Tensor<float, 2> logits({rows, classes});
      Tensor<float, 1> weights({rows});
      Tensor<double, 1> losses({rows});
      for (Index n = 0; n < rows; ++n) {
        for (Index v = 0; v < classes; ++v) {
          logits(n, v) = x[static_cast<std::size_t>((n / inner * classes + v) * inner + n % inner)];
        }
        const Index target = targets[static_cast<std::size_t>(n)];
        weights(n) = ignores && target == ignored ? 0 : by_class[static_cast<std::size_t>(target)];
      }
      const double mean = cross_entropy<float>(Context(), {{}, losses}, logits, targets, weights);
      double sum = 0, total_weight = 0, by_losses = 0, largest = 1;
      for (Index n = 0; n < rows; ++n) {
        if (!normalizes && weights(n) > 0) {
          double total = 0;
          for (Index v = 0; v < classes; ++v) total += std::exp(static_cast<double>(logits(n, v)));
          losses(n) -= std::log(total);
        }
        sum += weights(n) * losses(n);
        total_weight += weights(n);
        largest = std::max(largest, std::abs(weights(n) * losses(n)));
        by_losses += std::abs(weights(n) * losses(n));
      }
      const auto reduction = golden.attribute<std::string>("reduction", "mean");
      // The recording ran in float: N terms in some order, each off by a few roundings of numbers below 8.
      const double unit = 0x1p-24;
      if (reduction == "none") {
        ASSERT_EQ(std::ssize(expected), rows);
        for (Index n = 0; n < rows; ++n) {
          EXPECT_NEAR(weights(n) * losses(n), expected[static_cast<std::size_t>(n)],
                      16 * unit * std::max(1.0, largest));
        }
      } else {
        const double value = reduction == "sum" ? sum : sum / total_weight;
        if (normalizes && reduction == "mean") {
          EXPECT_DOUBLE_EQ(mean, value);
        }
        const double terms = (static_cast<double>(rows) + 16) * unit * (by_losses + 1);
        EXPECT_NEAR(value, expected[0], reduction == "sum" ? terms : 2 * terms / total_weight);
      }
      if (const Array* log_probabilities = golden.output(1)) {  // where it counts: −loss at the target
        const auto recorded = to_vector<float>(*log_probabilities, "log_prob");
        for (Index n = 0; n < rows; ++n) {
          const Index v = targets[static_cast<std::size_t>(n)];
          if (weights(n) == 0) continue;
          const std::size_t place = static_cast<std::size_t>((n / inner * classes + v) * inner + n % inner);
          EXPECT_NEAR(-losses(n), recorded[place], 16 * unit * std::max(1.0, std::abs(losses(n))));
        }
      }
      ++cases;
    }
  }
  if (cases == 0) GTEST_SKIP() << "no recorded operator cases at " << HEEDFUL_GOLDENS;
  EXPECT_EQ(cases, 41);
}

}  // namespace
}  // namespace heedful
