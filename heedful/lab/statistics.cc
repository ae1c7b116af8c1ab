#include "heedful/lab/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "heedful/core/check.h"

namespace heedful {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double count(std::span<const double> values) {
  return static_cast<double>(values.size());
}

double squared_error(std::span<const double> values) {  // of the mean
  const double s = deviation(values);
  return s * s / count(values);
}

double correlation(std::span<const double> x, std::span<const double> y) {
  const double mx = mean(x), my = mean(y);
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mx) * (y[i] - my);
    xx += (x[i] - mx) * (x[i] - mx);
    yy += (y[i] - my) * (y[i] - my);
  }
  return xy / std::sqrt(xx * yy);
}

std::vector<double> ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> result(values.size());
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (std::size_t i = begin; i < end; ++i) result[order[i]] = static_cast<double>(begin + end - 1) / 2;
  }
  return result;
}

}  // namespace

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / count(values);
}

double smallest(std::span<const double> values) {
  HEEDFUL_CHECK(!values.empty());
  return *std::ranges::min_element(values);
}

double deviation(std::span<const double> values) {
  if (values.size() < 2) return 0;
  const double m = mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - m) * (value - m);
  return std::sqrt(sum / (count(values) - 1));
}

double student_quantile(Index degrees_of_freedom) {
  static constexpr std::array kQuantiles{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                         2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                         2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  if (degrees_of_freedom < 1) return kInfinity;
  const auto at = static_cast<std::size_t>(degrees_of_freedom - 1);
  if (at < kQuantiles.size()) return kQuantiles[at];
  return 1.96 + 2.46 / static_cast<double>(degrees_of_freedom);  // within 0.001 from 31 on
}

Interval mean_interval(std::span<const double> values) {
  if (values.size() < 2) return {-kInfinity, kInfinity};
  const double half = student_quantile(std::ssize(values) - 1) * std::sqrt(squared_error(values));
  return {mean(values) - half, mean(values) + half};
}

Interval prediction_interval(std::span<const double> values, Index further) {
  if (values.size() < 2) return {-kInfinity, kInfinity};
  const double half = student_quantile(std::ssize(values) - 1) * deviation(values) *
                      std::sqrt(1 / count(values) + 1 / static_cast<double>(further));
  return {mean(values) - half, mean(values) + half};
}

Interval difference_interval(std::span<const double> a, std::span<const double> b) {
  if (a.size() < 2 || b.size() < 2) return {-kInfinity, kInfinity};
  const double difference = mean(a) - mean(b), ea = squared_error(a), eb = squared_error(b);
  if (ea + eb == 0) return {difference, difference};
  const double freedom = (ea + eb) * (ea + eb) / (ea * ea / (count(a) - 1) + eb * eb / (count(b) - 1));
  const double half = student_quantile(static_cast<Index>(freedom)) * std::sqrt(ea + eb);
  return {difference - half, difference + half};
}

double fitted_slope(std::span<const double> x, std::span<const double> y) {
  HEEDFUL_CHECK(x.size() == y.size() && x.size() > 1);
  const double mx = mean(x), my = mean(y);
  double xy = 0, xx = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mx) * (y[i] - my);
    xx += (x[i] - mx) * (x[i] - mx);
  }
  return xy / xx;
}

double rank_correlation(std::span<const double> x, std::span<const double> y) {
  HEEDFUL_CHECK(x.size() == y.size());
  const std::vector<double> rx = ranks(x), ry = ranks(y);
  return correlation(rx, ry);
}

}  // namespace heedful
