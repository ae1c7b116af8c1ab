#include "heedful/inspection/diagnose_logits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heedful/core/error.h"
#include "heedful/core/random.h"

namespace heedful {
namespace {

LogitsPair right_pair(Index B = 2, Index T = 6, Index V = 9) {
  heedful::Random random(3);
  LogitsPair pair;
  pair.uncached = Tensor<double, 3>({B, T, V});
  for (double& logit : pair.uncached) logit = 5 * random.normal();
  pair.cached = pair.uncached.copy();
  return pair;
}

TEST(DiagnoseLogits, TellsTheSameBitsFromTheSameButForRounding) {
  LogitsPair pair = right_pair();
  EXPECT_EQ(diagnose_logits(pair).verdict, Verdict::correct);
  EXPECT_TRUE(diagnose_logits(pair).bit_identical);
  for (double& logit : pair.cached) logit *= 1 + 1e-6;
  EXPECT_EQ(diagnose_logits(pair).verdict, Verdict::correct);
  EXPECT_FALSE(diagnose_logits(pair).bit_identical);
  pair.cached(1, 4, 2) += 0.1;
  const LogitsDiagnosis d = diagnose_logits(pair);
  EXPECT_EQ(d.verdict, Verdict::unknown);
  EXPECT_EQ(d.sequence, 1);
  EXPECT_EQ(d.step, 4);
  EXPECT_EQ(d.token, 2);
  EXPECT_EQ(d.wrong_steps, 1);
  EXPECT_THAT(logits_text(d), ::testing::HasSubstr("all before step 4 agree"));
}

// Another sequence may go wrong earlier than the first one does.
TEST(DiagnoseLogits, PointsAtTheEarliestStepOfAnySequence) {
  LogitsPair pair = right_pair();
  pair.cached(0, 5, 1) += 1;
  pair.cached(1, 2, 3) += 1;
  const LogitsDiagnosis d = diagnose_logits(pair);
  EXPECT_EQ(d.sequence, 1);
  EXPECT_EQ(d.step, 2);
  EXPECT_EQ(d.token, 3);
  EXPECT_EQ(d.wrong_steps, 2);
}

// One sequence cannot show that its slots are another's; a single step cannot show that nothing advances.
TEST(DiagnoseLogits, CorrectSaysWhatItCannotExclude) {
  using ::testing::UnorderedElementsAre;
  const LogitsDiagnosis both = diagnose_logits(right_pair());
  EXPECT_EQ(both.excluded.size(), 5u);
  EXPECT_TRUE(both.not_excluded.empty());
  const LogitsDiagnosis alone = diagnose_logits(right_pair(1, 6));
  EXPECT_THAT(alone.not_excluded, UnorderedElementsAre("logits_of_other_sequence", "logits_of_first_sequence"));
  EXPECT_THAT(logits_text(alone), ::testing::HasSubstr("logits_of_other_sequence"));
  EXPECT_EQ(diagnose_logits(right_pair(1, 1)).not_excluded.size(), 5u);
  const nlohmann::json json = logits_json(alone);
  for (const char* key :
       {"verdict", "fault", "confidence", "residuals", "location", "excluded", "not_excluded", "fix"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["not_excluded"].size(), 2u);
  EXPECT_GT(json["residuals"]["logits_one_step_behind"], kMargin);
}

TEST(DiagnoseLogits, NamesWhatWasExchanged) {
  const LogitsPair right = right_pair();
  const auto named = [&](auto source) {
    LogitsPair pair = right_pair();
    for (Index b = 0; b < 2; ++b) {
      for (Index t = 0; t < 6; ++t) {
        const auto [from_b, from_t] = source(b, t);
        for (Index v = 0; v < 9; ++v) pair.cached(b, t, v) = right.uncached(from_b, from_t, v);
      }
    }
    const LogitsDiagnosis d = diagnose_logits(pair);
    return d.verdict == Verdict::fault ? d.fault : std::string(name(d.verdict));
  };
  using At = std::pair<Index, Index>;
  EXPECT_EQ(named([](Index b, Index t) { return At{b, std::max<Index>(t - 1, 0)}; }), "logits_one_step_behind");
  EXPECT_EQ(named([](Index b, Index t) { return At{b, std::min<Index>(t + 1, 5)}; }), "logits_one_step_ahead");
  EXPECT_EQ(named([](Index b, Index t) { return At{1 - b, t}; }), "logits_of_other_sequence");
  EXPECT_EQ(named([](Index, Index t) { return At{0, t}; }), "logits_of_first_sequence");
  EXPECT_EQ(named([](Index b, Index) { return At{b, 0}; }), "logits_of_first_step");
  EXPECT_EQ(named([](Index b, Index t) { return At{b, 5 - t}; }), "unknown");
}

// With one step or one sequence nothing could have been exchanged: no name may come of it.
TEST(DiagnoseLogits, NamesNothingWhereNothingCanBeExchanged) {
  LogitsPair pair = right_pair(1, 1, 9);
  for (double& logit : pair.cached) logit += 1;
  EXPECT_EQ(diagnose_logits(pair).verdict, Verdict::unknown);
}

TEST(DiagnoseLogits, RefusesBadInput) {
  ArrayMap arrays;
  const LogitsPair pair = right_pair();
  arrays.emplace("logits_cached", to_array(pair.cached));
  EXPECT_TRUE(holds_logits(arrays));
  EXPECT_THROW(read_logits(arrays, {}), Error);
  arrays.emplace("logits_uncached", to_array(right_pair(2, 5, 9).uncached));
  EXPECT_THROW(read_logits(arrays, {}), Error);
  arrays.at("logits_uncached") = to_array(pair.uncached);
  EXPECT_EQ(read_logits(arrays, {}).type, DataType::f64);
  arrays.emplace("q", to_array(pair.cached));
  EXPECT_THROW(read_logits(arrays, {}), Error);
}

}  // namespace
}  // namespace heedful
