// The little statistics the lab needs. Intervals are 95 %.
#ifndef HEEDFUL_LAB_STATISTICS_H_
#define HEEDFUL_LAB_STATISTICS_H_

#include <span>

#include "heedful/report/claim.h"

namespace heedful {

double mean(std::span<const double> values);
double smallest(std::span<const double> values);
double deviation(std::span<const double> values);  // of a sample, n − 1; 0 for a single value

// The 0.975 quantile of Student's t, to three digits.
double student_quantile(Index degrees_of_freedom);

// Of the mean, by Student's t. One value says nothing about its spread: −∞ to ∞.
Interval mean_interval(std::span<const double> values);

// Where the mean of `further` more runs of the same kind would fall.
Interval prediction_interval(std::span<const double> values, Index further);

// Of mean(a) − mean(b), by Welch's t.
Interval difference_interval(std::span<const double> a, std::span<const double> b);

// Slope of the least-squares line through (x, y).
double fitted_slope(std::span<const double> x, std::span<const double> y);

// Spearman's: the correlation of ranks, equals sharing their mean rank. NaN where either does not vary.
double rank_correlation(std::span<const double> x, std::span<const double> y);

}  // namespace heedful

#endif  // HEEDFUL_LAB_STATISTICS_H_
