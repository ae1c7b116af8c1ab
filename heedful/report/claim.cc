#include "heedful/report/claim.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace heedful {
namespace {

Verdict verdict_of(bool so) {
  return so ? Verdict::holds : Verdict::differs;
}

std::string with_interval(double mean, const Interval& interval) {
  return fmt::format("{:.4g}, 95 % interval {:.4g} to {:.4g}", mean, interval.low, interval.high);
}

}  // namespace

Claim claim_that(Statement statement, bool so, std::string expected, std::string measured) {
  return {std::move(statement), std::move(expected), std::move(measured), verdict_of(so)};
}

Claim claim_equal(Statement statement, Index expected, Index measured) {
  const bool so = expected == measured;
  return {std::move(statement), fmt::format("{}", expected),
          so ? fmt::format("{}", measured) : fmt::format("{}, off by {}", measured, measured - expected),
          verdict_of(so)};
}

std::string print_like(std::string_view printed, double value) {
  const auto exponent = printed.find('e');
  const std::string_view mantissa = printed.substr(0, exponent);
  const auto point = mantissa.find('.');
  const auto digits = static_cast<int>(point == std::string_view::npos ? 0 : mantissa.size() - point - 1);
  return exponent == std::string_view::npos ? fmt::format("{:.{}f}", value, digits)
                                            : fmt::format("{:.{}e}", value, digits);
}

Claim claim_printed(Statement statement, std::string_view printed, double measured) {
  std::string text = print_like(printed, measured);
  const bool so = text == printed;
  if (!so) text += fmt::format(", off by {:.2g}", measured - std::stod(std::string(printed)));
  return {std::move(statement), std::string(printed), text, verdict_of(so)};
}

Claim claim_at_most(Statement statement, double limit, double measured) {
  return {std::move(statement), fmt::format("at most {:.3g}", limit), fmt::format("{:.3g}", measured),
          verdict_of(measured <= limit)};
}

Claim claim_at_least(Statement statement, double limit, double measured) {
  return {std::move(statement), fmt::format("at least {:.3g}", limit), fmt::format("{:.3g}", measured),
          verdict_of(measured >= limit)};
}

Claim claim_between(Statement statement, const Interval& limits, double measured) {
  return {std::move(statement), fmt::format("{:.4g} to {:.4g}", limits.low, limits.high),
          fmt::format("{:.4g}", measured), verdict_of(limits.contains(measured))};
}

Claim claim_consistent(Statement statement, double expected, double mean, const Interval& interval) {
  const bool so = interval.contains(expected);
  std::string measured = with_interval(mean, interval);
  if (!so) measured += fmt::format(", off by {:.4g}", mean - expected);
  return {std::move(statement), fmt::format("{:.4g}", expected), measured, verdict_of(so)};
}

Claim claim_positive(Statement statement, double effect, const Interval& interval, std::string_view unit) {
  Verdict verdict = Verdict::differs;  // also where the interval is not a number
  if (interval.low > 0) verdict = Verdict::holds;
  if (interval.low <= 0 && interval.high >= 0) verdict = Verdict::not_detectable;
  return {std::move(statement), fmt::format("above 0{}", unit), with_interval(effect, interval), verdict};
}

Claim claim_negligible(Statement statement, double margin, double effect, const Interval& interval) {
  Verdict verdict = interval.contains(0) ? Verdict::not_detectable : Verdict::differs;
  if (-margin <= interval.low && interval.high <= margin) verdict = Verdict::holds;
  return {std::move(statement), fmt::format("0, give or take {:.4g}", margin), with_interval(effect, interval),
          verdict};
}

}  // namespace heedful
