#include "heedful/report/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "heedful/report/claim.h"
#include "heedful/report/json.h"
#include "heedful/report/text.h"

namespace heedful {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Claim, APrintedFigureIsJudgedByItsDigits) {
  EXPECT_EQ(claim_printed({"x", ""}, "0.4240", 0.42396).verdict, Verdict::holds);
  EXPECT_EQ(claim_printed({"x", ""}, "0.4240", 0.42406).verdict, Verdict::differs);
  EXPECT_EQ(claim_printed({"x", ""}, "9.94e-02", 0.09938).verdict, Verdict::holds);
  EXPECT_EQ(claim_printed({"x", ""}, "512.59", 512.594).verdict, Verdict::holds);
  EXPECT_EQ(claim_printed({"x", ""}, "2", 2.4).verdict, Verdict::holds);
  EXPECT_EQ(claim_printed({"x", ""}, "2", kNan).verdict, Verdict::differs);
}

TEST(Claim, AWrongMeasurementDiffersAndSaysByHowMuch) {
  EXPECT_EQ(claim_equal({"x", ""}, 7, 7).verdict, Verdict::holds);
  const Claim wrong = claim_equal({"x", ""}, 7, 9);
  EXPECT_EQ(wrong.verdict, Verdict::differs);
  EXPECT_EQ(wrong.measured, "9, off by 2");
  EXPECT_TRUE(wrong.failed());
  EXPECT_FALSE(claim_equal({"x", "", false}, 7, 9).failed());
  for (const double bad : {2.0, kNan}) EXPECT_EQ(claim_at_most({"x", ""}, 1, bad).verdict, Verdict::differs) << bad;
  for (const double bad : {0.0, kNan}) EXPECT_EQ(claim_at_least({"x", ""}, 1, bad).verdict, Verdict::differs) << bad;
  EXPECT_EQ(claim_between({"x", ""}, {1, 2}, 1.5).verdict, Verdict::holds);
  EXPECT_EQ(claim_between({"x", ""}, {1, 2}, kNan).verdict, Verdict::differs);
}

TEST(Claim, AnEffectIsToldFromNoneByItsInterval) {
  EXPECT_EQ(claim_positive({"x", ""}, 2, {1, 3}, "").verdict, Verdict::holds);
  EXPECT_EQ(claim_positive({"x", ""}, 1, {-1, 3}, "").verdict, Verdict::not_detectable);
  EXPECT_EQ(claim_positive({"x", ""}, -2, {-3, -1}, "").verdict, Verdict::differs);
  EXPECT_EQ(claim_positive({"x", ""}, kNan, {kNan, kNan}, "").verdict, Verdict::differs);
}

TEST(Claim, NoEffectIsToldFromTooCoarseAMeasurement) {
  EXPECT_EQ(claim_negligible({"x", ""}, 0.1, 0, {-0.1, 0.1}).verdict, Verdict::holds);
  EXPECT_EQ(claim_negligible({"x", ""}, 0.1, 0.05, {0.01, 0.09}).verdict, Verdict::holds);
  EXPECT_EQ(claim_negligible({"x", ""}, 0.1, 0, {-0.2, 0.2}).verdict, Verdict::not_detectable);
  EXPECT_EQ(claim_negligible({"x", ""}, 0.1, 0.2, {0.05, 0.35}).verdict, Verdict::differs);
  EXPECT_EQ(claim_negligible({"x", ""}, 0.1, kNan, {kNan, kNan}).verdict, Verdict::differs);
}

Report wide_report() {
  Report report{.name = "wide", .title = std::string(70, 't') + " " + std::string(70, 'u')};
  report.claims.push_back(claim_that({std::string(300, 'c'), "Σ source"}, true, std::string(120, 'e'), "measured"));
  report.tables.push_back(
      {"table", {"a", "b"}, {{std::string(90, 'x'), "ε ≤ δ words that wrap " + std::string(60, 'y')}}});
  report.notes.emplace_back("a note √√√ " + std::string(150, 'n'));
  return report;
}

TEST(Text, NoLineIsWiderThanTheTerminalAndNothingIsLost) {
  const std::string text = render_text(wide_report());
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(text_width(line), kTextColumns) << line;
  const auto count = [&](char c) { return std::ranges::count(text, c); };
  EXPECT_GE(count('c'), 300);
  EXPECT_GE(count('y'), 60);
  EXPECT_GE(count('n'), 150);
  EXPECT_NE(text.find("holds"), std::string::npos);
}

TEST(Json, HoldsEveryClaimWithItsVerdict) {
  Report report = wide_report();
  report.curves.push_back({"loss", "step", "nats", false, true, {{"a", {1, 2}, {0.5, kNan}}}});
  const auto json = nlohmann::json::parse(reports_json(std::span(&report, 1)).dump());
  const auto& experiment = json.at("experiments").at(0);
  EXPECT_EQ(experiment.at("name"), "wide");
  EXPECT_EQ(experiment.at("claims").at(0).at("verdict"), "holds");
  EXPECT_EQ(experiment.at("claims").at(0).at("measured"), "measured");
  EXPECT_TRUE(experiment.at("curves").at(0).at("curves").at(0).at("y").at(1).is_null());
}

}  // namespace
}  // namespace heedful
