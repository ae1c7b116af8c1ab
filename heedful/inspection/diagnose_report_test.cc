#include "heedful/inspection/diagnose_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "heedful/inspection/diagnose_probes.h"
#include "heedful/inspection/faults.h"

namespace heedful {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

std::vector<Observation> observe(const std::vector<std::string>& faults) {
  std::vector<Observation> result;
  for (AttentionCase& probe : standard_probes({})) {
    AttentionAnswer answer = simulate(probe, faults);
    answer.weights = {};
    answer.lse = {};
    result.push_back({std::move(probe), std::move(answer)});
  }
  return result;
}

Index lines(const std::string& page) {
  return std::ranges::count(page, '\n');
}

TEST(DiagnoseReport, FitsOneScreenAndSaysWhatMatters) {
  for (const std::string fault : {"mask_after_softmax", "softmax_over_heads", "online_tail_dropped"}) {
    const std::vector<Observation> observations = observe({fault});
    const std::string page = diagnosis_text(diagnose(Context(2), observations), observations);
    EXPECT_LE(lines(page), 24) << page;
    EXPECT_THAT(page, HasSubstr("verdict      " + fault));
    EXPECT_THAT(page, HasSubstr("evidence"));
    EXPECT_THAT(page, HasSubstr("where"));
    EXPECT_THAT(page, HasSubstr("smallest"));
    EXPECT_THAT(page, HasSubstr(diagnosis::find_fault(fault).fix.substr(0, 10)));
  }
}

// The weights behind an output show what the mistake did, without any hypothesis.
TEST(DiagnoseReport, ReadsTheRowSumsOffTheOutput) {
  const std::vector<Observation> observations = observe({"mask_after_softmax"});
  const std::string page = diagnosis_text(diagnose(Context(2), observations), observations);
  EXPECT_THAT(page, HasSubstr("recovered from the output: rows sum to 0."));
}

TEST(DiagnoseReport, JsonHoldsEveryField) {
  const std::vector<Observation> observations = observe({"groups_tiled"});
  const nlohmann::json json = diagnosis_json(diagnose(Context(2), observations), observations);
  for (const char* key :
       {"verdict", "fault", "confidence", "residuals", "location", "excluded", "not_excluded", "fix"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["verdict"], "fault");
  EXPECT_EQ(json["fault"], "groups_tiled");
  EXPECT_EQ(json["location"][0]["array"], "out");
  EXPECT_GE(json["confidence"]["margin"].get<double>(), kMargin);
  EXPECT_GT(json["residuals"]["correct"].get<double>(), kMargin);
}

// Who reads the JSON can run the smallest case: its inputs are there, [B, heads, T, width] nested.
TEST(DiagnoseReport, JsonHoldsTheSmallestCase) {
  const std::vector<Observation> observations = observe({"padding_of_first_sequence"});
  const Diagnosis d = diagnose(Context(2), observations);
  ASSERT_TRUE(d.counterexample.has_value());
  const AttentionCase& small = d.counterexample->given;
  const nlohmann::json json = diagnosis_json(d, observations)["smallest"];
  EXPECT_EQ(json["key_lengths"], small.declared.key_lengths);
  ASSERT_EQ(json["v"].size(), static_cast<std::size_t>(small.B()));
  EXPECT_EQ(json["v"][1][0][0][0], small.v(1, 0, 0, 0));
  EXPECT_EQ(json["q"][0][0].size(), static_cast<std::size_t>(small.Tq()));
  EXPECT_EQ(json["array"], "out");
}

// A usual test, T = 4, H = G, no padding: it leaves dozens of faults looking correct, and says which.
TEST(DiagnoseReport, AUsualSquareTestSaysWhatItCannotExclude) {
  std::vector<Observation> observations;
  observations.push_back({square_case({}), {}});
  observations.front().answer.out = simulate(observations.front().given, {}).out.copy();
  const Diagnosis d = diagnose(Context(2), observations);
  ASSERT_TRUE(d.is_correct());
  for (const char* fault : {"groups_tiled", "padding_missing", "window_ignored", "scale_by_value_width",
                            "causal_top_left", "online_tail_dropped", "mask_adds_1e4", "softmax_no_maximum"}) {
    EXPECT_THAT(d.not_excluded, Contains(fault));
  }
  for (const char* fault : {"scale_missing", "causal_missing", "softmax_over_queries", "heads_reversed"}) {
    EXPECT_THAT(d.excluded, Contains(fault));
  }
  const nlohmann::json json = diagnosis_json(d, observations);
  std::map<std::string, std::string> shown_by;
  for (const auto& entry : json["not_excluded"]) {
    for (const auto& fault : entry["faults"]) shown_by[fault] = entry["probe"];
  }
  EXPECT_EQ(shown_by["groups_tiled"], "grouped");
  EXPECT_EQ(shown_by["window_ignored"], "window");
  EXPECT_EQ(shown_by["mask_adds_1e4"], "hidden");
  EXPECT_EQ(shown_by["position_half_for_interleaved"], "rotary, interleaved");
  for (const auto& [fault, probe] : shown_by) EXPECT_NE(probe, "") << fault << " is shown by no probe";
  EXPECT_LE(lines(diagnosis_text(d, observations)), 24);
}

TEST(DiagnoseReport, TheCatalogueIsComplete) {
  const nlohmann::json json = catalogue_json();
  std::map<std::string, int> passes, groups;
  for (const auto& fault : json) {
    ++passes[fault["pass"]];
    ++groups[fault["group"]];
    for (const char* key : {"name", "mistake", "looks", "fix"}) EXPECT_NE(fault[key], "") << fault["name"];
  }
  EXPECT_GE(passes["forward"], 60);
  EXPECT_GE(passes["backward"], 20);
  EXPECT_EQ(groups.size(), 13u);
  EXPECT_THAT(catalogue_text(), HasSubstr("faults in the forward pass"));
}

}  // namespace
}  // namespace heedful
