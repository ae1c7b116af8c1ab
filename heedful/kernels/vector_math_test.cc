#include "heedful/kernels/vector_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "heedful/core/random.h"
#include "heedful/kernels/each_target.h"

namespace heedful {
namespace {

template <class T>
struct Function {
  const char* name;
  void (*ours)(std::span<T>, std::span<const T>);
  long double (*exact)(long double);
  double bound;      // largest error allowed, in units in the last place; as stated in vector_math-inl.h
  double low, high;  // where the interesting arguments lie
};

// The long double functions carry 11 bits more than double, so their own error, below 1 of their ulps, is 0.0005
// here.
template <class T>
std::vector<Function<T>> functions();
template <>
std::vector<Function<float>> functions() {
  return {{"exp", vector_exp<float>, std::exp, 0.95, -104, 89},
          {"exp_flushed", vector_exp_flushed<float>, std::exp, 0.95, -87.3, 0},
          {"tanh", vector_tanh<float>, std::tanh, 2.6, -10, 10},
          {"erf", vector_erf<float>, std::erf, 1, -4.5, 4.5}};
}
template <>
std::vector<Function<double>> functions() {
  return {{"exp", vector_exp<double>, std::exp, 0.95, -746, 710},
          {"exp_flushed", vector_exp_flushed<double>, std::exp, 0.95, -708.3, 0},
          {"tanh", vector_tanh<double>, std::tanh, 2.7, -22, 22},
          {"erf", vector_erf<double>, std::erf, 1.15, -6.5, 6.5}};
}

// |got − want| in units of the last place of want; infinities and NaN must be met.
template <class T>
double ulps(T got, long double want) {
  constexpr double kNever = 1e30;
  if (std::isnan(want)) return std::isnan(got) ? 0 : kNever;
  const T rounded = static_cast<T>(want);
  if (!std::isfinite(rounded) || !std::isfinite(got)) return got == rounded ? 0 : kNever;
  int exponent = 0;
  std::frexp(want, &exponent);
  exponent = std::max(exponent, std::numeric_limits<T>::min_exponent);
  const long double unit = std::ldexp(1.0L, exponent - std::numeric_limits<T>::digits);
  return static_cast<double>(std::abs(static_cast<long double>(got) - want) / unit);
}

template <class T>
void expect_accurate(const Function<T>& function, std::span<const T> x) {
  std::vector<T> y(x.size());
  function.ours(y, x);
  double worst = 0;
  T where = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double error = ulps(y[i], function.exact(x[i]));
    if (error > worst) worst = error, where = x[i];
  }
  EXPECT_LE(worst, function.bound) << function.name << " at " << std::hexfloat << where;
}

bool is_in_domain(const char* name, double x, double smallest) {
  return std::string(name) != "exp_flushed" || (x <= 0 && std::exp(x) >= smallest) || std::isnan(x);
}

template <class T>
std::vector<T> arguments(const Function<T>& function, Index count) {
  Random random(7);
  std::vector<T> x;
  for (Index i = 0; i < count; ++i) {
    const double u = random.uniform();
    // Half of them even over the range, half over every magnitude.
    double value = function.low + (function.high - function.low) * u;
    if (i % 2 == 1) value = std::ldexp(1 + u, static_cast<int>(-random.integer(0, 60)) + 3) * (i % 4 == 1 ? 1 : -1);
    if (is_in_domain(function.name, value, std::numeric_limits<T>::min())) x.push_back(static_cast<T>(value));
  }
  return x;
}

template <class T>
class VectorMath : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(VectorMath, Types);

TYPED_TEST(VectorMath, ErrorsStayBelowTheStatedBounds) {
  for (const auto& function : functions<TypeParam>()) {
    const auto x = arguments(function, 400'000);
    expect_accurate<TypeParam>(function, x);
  }
}

TYPED_TEST(VectorMath, SpecialValues) {
  using T = TypeParam;
  constexpr T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  const T tiny = std::numeric_limits<T>::denorm_min();
  const T large = std::numeric_limits<T>::max();
  const auto value = [](auto function, T x) {
    T y = 0;
    function(std::span<T>(&y, 1), std::span<const T>(&x, 1));
    return y;
  };
  for_each_target([&](const char* target) {
    SCOPED_TRACE(target);
    for (T x : {T{0}, T{-0.0}, tiny, -tiny}) {
      EXPECT_EQ(value(vector_exp<T>, x), 1);
      EXPECT_EQ(value(vector_exp_flushed<T>, -std::abs(x)), 1);
    }
    EXPECT_EQ(value(vector_exp<T>, infinity), infinity);
    EXPECT_EQ(value(vector_exp<T>, large), infinity);
    EXPECT_EQ(value(vector_exp<T>, -infinity), 0);
    EXPECT_EQ(value(vector_exp<T>, -large), 0);
    EXPECT_EQ(value(vector_exp_flushed<T>, -infinity), 0);
    EXPECT_EQ(value(vector_exp_flushed<T>, -large), 0);
    for (auto function : {vector_tanh<T>, vector_erf<T>}) {
      EXPECT_EQ(value(function, infinity), 1);
      EXPECT_EQ(value(function, -infinity), -1);
      EXPECT_EQ(value(function, large), 1);
      EXPECT_EQ(value(function, 0), 0);
      EXPECT_TRUE(std::signbit(value(function, T{-0.0})));
    }
    for (auto function : {vector_exp<T>, vector_exp_flushed<T>, vector_tanh<T>, vector_erf<T>}) {
      EXPECT_TRUE(std::isnan(value(function, nan)));
      EXPECT_TRUE(std::isnan(value(function, -nan)));
    }
  });
}

TYPED_TEST(VectorMath, BitsAreTheSameOnEveryTargetAndInEveryLane) {
  using T = TypeParam;
  for (const auto& function : functions<T>()) {
    const auto x = arguments(function, 20'011);
    std::vector<T> first(x.size());
    function.ours(first, x);
    for_each_target([&](const char* target) {
      std::vector<T> y(x.size());
      function.ours(y, x);
      EXPECT_EQ(y, first) << function.name << " on " << target;
      for (std::size_t i = 0; i < 100; ++i) function.ours(std::span(y).subspan(i, 1), std::span(x).subspan(i, 1));
      EXPECT_EQ(y, first) << function.name << " one by one on " << target;
    });
  }
}

// NumPy's own table of arguments and correctly rounded results, with the difference it allows itself.
void expect_table(const std::string& name, const Function<float>& ours_float, const Function<double>& ours_double) {
  std::ifstream file(std::string(HEEDFUL_GOLDENS) + "/umath/umath-validation-set-" + name + ".csv");
  if (!file) GTEST_SKIP() << "no folder of expected values: " << HEEDFUL_GOLDENS << "/umath";
  int rows = 0;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("np.float")) continue;
    const std::size_t a = line.find(','), b = line.find(',', a + 1), c = line.find(',', b + 1);
    const auto bits = [&](std::size_t from, std::size_t to) {
      return std::stoull(line.substr(from + 3, to - from - 3), nullptr, 16);
    };
    const int allowed = std::stoi(line.substr(c + 1));
    const auto compare = [&]<class T, class Bits>(const Function<T>& function, Bits in, Bits out) {
      const T x = std::bit_cast<T>(in), want = std::bit_cast<T>(out);
      T y = 0;
      function.ours(std::span<T>(&y, 1), std::span<const T>(&x, 1));
      EXPECT_LE(ulps(y, want), allowed) << line;
    };
    if (line.starts_with("np.float32")) {
      compare(ours_float, static_cast<std::uint32_t>(bits(a, b)), static_cast<std::uint32_t>(bits(b, c)));
    } else {
      compare(ours_double, static_cast<std::uint64_t>(bits(a, b)), static_cast<std::uint64_t>(bits(b, c)));
    }
    ++rows;
  }
  EXPECT_GT(rows, 100);
}
TEST(VectorMathTable, Exp) {
  expect_table("exp", functions<float>()[0], functions<double>()[0]);
}
TEST(VectorMathTable, Tanh) {
  expect_table("tanh", functions<float>()[2], functions<double>()[2]);
}

// Every `step`-th float of all 2³²; double's functions are exact enough to stand for the true value here.
void sweep_floats(std::uint64_t step) {
  constexpr std::size_t kBlock = 1 << 14;
  std::vector<float> x(kBlock), y(kBlock);
  for (const auto& function : functions<float>()) {
    const auto exact = std::string(function.name) == "tanh"  ? static_cast<double (*)(double)>(std::tanh)
                       : std::string(function.name) == "erf" ? static_cast<double (*)(double)>(std::erf)
                                                             : static_cast<double (*)(double)>(std::exp);
    double worst = 0;
    float where = 0;
    for (std::uint64_t bits = 0; bits < (1ull << 32); bits += step * kBlock) {
      for (std::size_t i = 0; i < kBlock; ++i) {
        x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(bits + i * step));
        if (!is_in_domain(function.name, x[i], std::numeric_limits<float>::min())) x[i] = 0;
      }
      function.ours(y, x);
      for (std::size_t i = 0; i < kBlock; ++i) {
        const double error = ulps<float>(y[i], exact(x[i]));
        if (error > worst) worst = error, where = x[i];
      }
    }
    EXPECT_LE(worst, function.bound) << function.name << " at " << std::hexfloat << where;
    testing::Test::RecordProperty(std::string("worst_") + function.name, std::to_string(worst));
    std::printf("%s: %.4f ulp at %a\n", function.name, worst, static_cast<double>(where));
  }
}
TEST(VectorMathSweep, EveryFourThousandthFloat) {
  sweep_floats(4093);
}
TEST(VectorMathSweep, DISABLED_NightlyEveryFloat) {
  sweep_floats(1);
}

}  // namespace
}  // namespace heedful
