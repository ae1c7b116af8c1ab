// Judges a measurement: each function holds what was measured against what was expected and returns the claim with
// its verdict. A measurement that is not a number differs from everything.
#ifndef HEEDFUL_REPORT_CLAIM_H_
#define HEEDFUL_REPORT_CLAIM_H_

#include <string>
#include <string_view>

#include "heedful/report/report.h"

namespace heedful {

struct Interval {
  double low = 0, high = 0;

  bool contains(double x) const { return low <= x && x <= high; }
};

// Anything that is so or not so.
Claim claim_that(Statement statement, bool so, std::string expected, std::string measured);

// A whole number, exactly.
Claim claim_equal(Statement statement, Index expected, Index measured);

// A printed figure, "0.4240" or "9.94e-02": the measurement, rounded to as many digits, must print the same.
Claim claim_printed(Statement statement, std::string_view printed, double measured);
std::string print_like(std::string_view printed, double value);

Claim claim_at_most(Statement statement, double limit, double measured);
Claim claim_at_least(Statement statement, double limit, double measured);
Claim claim_between(Statement statement, const Interval& limits, double measured);

// A mean known up to `interval`, against a figure that another set of runs gave.
Claim claim_consistent(Statement statement, double expected, double mean, const Interval& interval);

// An effect that should lie above 0, known up to `interval`: holds where the interval lies above 0, differs where it
// lies below, and cannot be told where 0 lies inside. `unit` follows the number.
Claim claim_positive(Statement statement, double effect, const Interval& interval, std::string_view unit);

// No effect to speak of: holds where the whole interval lies within ±margin, differs where it leaves out 0, and cannot
// be told where it holds 0 and more than the margin.
Claim claim_negligible(Statement statement, double margin, double effect, const Interval& interval);

}  // namespace heedful

#endif  // HEEDFUL_REPORT_CLAIM_H_
