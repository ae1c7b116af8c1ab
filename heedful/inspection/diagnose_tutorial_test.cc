#include "heedful/inspection/diagnose_tutorial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <sstream>

#include "heedful/inspection/diagnose_tape.h"
#include "heedful/inspection/diagnose_tutorial_symptoms.h"

namespace heedful {
namespace {

using diagnosis::Symptom;
using diagnosis::Trap;
using ::testing::HasSubstr;

// d/dx of x·exp(x)/(x + y) − log(y), against central differences; the step's error is below 1e-8.
TEST(Tape, DifferentiatesWhatItRecords) {
  const auto value = [](double x, double y) { return x * std::exp(x) / (x + y) - std::log(y); };
  diagnosis::Tape tape;
  const diagnosis::Recorded x = tape.input(0.7), y = tape.input(1.9);
  const diagnosis::Recorded f = x * exp(x) / (x + y) - log(y);
  EXPECT_DOUBLE_EQ(f.value(), value(0.7, 1.9));
  const std::vector<double> gradient = tape.gradients(f);
  EXPECT_NEAR(gradient[x.at], (value(0.7 + 1e-5, 1.9) - value(0.7 - 1e-5, 1.9)) / 2e-5, 1e-8);
  EXPECT_NEAR(gradient[y.at], (value(0.7, 1.9 + 1e-5) - value(0.7, 1.9 - 1e-5)) / 2e-5, 1e-8);
}

// The point of the lesson: no trap keeps the loss from falling, and every one can be told by a line or by the map.
TEST(Tutorial, EveryTrapShowsSomewhereAndTheLossFalls) {
  const diagnosis::Symptoms right = diagnosis::measure_symptoms(Trap::none, 0);
  for (int trap = 1; trap <= diagnosis::kTraps; ++trap) {
    SCOPED_TRACE(trap);
    const diagnosis::Symptoms symptoms = diagnosis::measure_symptoms(static_cast<Trap>(trap), 0);
    EXPECT_LT(symptoms.losses.back(), 0.75 * symptoms.losses.front());
    int different = symptoms.heat_map != right.heat_map;
    for (const Symptom& symptom : symptoms.measured) different += symptom.right != symptom.here;
    EXPECT_GE(different, 1);
  }
  for (const Symptom& symptom : right.measured) EXPECT_EQ(symptom.right, symptom.here);
}

// The report of the ninth trap names the key with the largest weight; removing that key must do the least.
TEST(Tutorial, TheHeaviestKeyIsNotTheOneThatMatters) {
  for (const std::uint64_t seed : {0, 1, 2, 3, 4}) {
    const std::string report = diagnosis::measure_symptoms(Trap::explanation, seed).measured.back().here;
    double heaviest = 0, other = 0;
    const std::size_t numbers = report.find("removing");
    ASSERT_NE(numbers, std::string::npos) << report;
    ASSERT_EQ(std::sscanf(report.c_str() + numbers, "removing 1: %lf, 2: %lf", &heaviest, &other), 2) << report;
    EXPECT_LT(heaviest, 0.5 * other) << report;
  }
}

std::string play(const std::string& answers, std::uint64_t seed, TutorialScore* score = nullptr) {
  std::istringstream in(answers);
  std::ostringstream page;
  const TutorialScore reached = run_tutorial(in, page, seed);
  if (score != nullptr) *score = reached;
  return page.str();
}

TEST(Tutorial, CanBeScriptedAndRepeated) {
  const std::string answers = "s s s s s s s s s";
  const std::string page = play(answers, 1);
  EXPECT_EQ(page, play(answers, 1));
  EXPECT_NE(page, play(answers, 2));
  EXPECT_THAT(page, HasSubstr("exercise 9 of 9"));
  EXPECT_THAT(page, HasSubstr("0 of 9 named."));
}

TEST(Tutorial, CountsRightAnswersAndStopsWhenAsked) {
  TutorialScore score;
  const std::string all = "1 2 3 4 5 6 7 8 9 ";
  std::string answers;
  for (int exercise = 0; exercise < 9; ++exercise) answers += all;
  const std::string page = play("h " + answers, 0, &score);  // wrong ones are answered and passed over
  EXPECT_THAT(page, HasSubstr("Not "));
  EXPECT_GE(score.right, 3);
  const std::string stopped = play("q", 0, &score);
  EXPECT_EQ(score.asked, 1);
  EXPECT_THAT(stopped, HasSubstr("0 of 1 named."));
  EXPECT_THAT(play("", 0), HasSubstr("0 of 1 named."));
  EXPECT_THAT(play("nonsense q", 0), HasSubstr("Not nonsense"));
}

}  // namespace
}  // namespace heedful
