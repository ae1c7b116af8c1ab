#include "heedful/inspection/diagnose_counterexample.h"

#include "heedful/inspection/diagnose_compare.h"
#include "heedful/inspection/diagnose_shrink.h"

namespace heedful {
namespace {

// The first place where the answer is clearly wrong, in the output before the gradients.
std::optional<Location> clearly_wrong(const AttentionCase& given, const AttentionAnswer& answer) {
  const diagnosis::Recipe recipe = diagnosis::correct_recipe(given.declared);
  const diagnosis::Walk correct = diagnosis::walk(given, recipe);
  if (diagnosis::forward_residual(correct, answer) >= kMargin)
    return diagnosis::wrong_places(correct, answer).front();
  if (!given.has_gradients() || !is_given(answer.dq)) return std::nullopt;
  const diagnosis::GradientWalk back = diagnosis::walk_back(correct);
  if (diagnosis::backward_residual(back, answer) < kMargin) return std::nullopt;
  return diagnosis::wrong_places(back, answer).front();
}

}  // namespace

std::optional<Counterexample> find_counterexample(const Answers& answers, std::span<const Observation> observations) {
  for (const Observation& observation : observations) {
    const auto is_wrong = [&](const AttentionCase& given) {
      return clearly_wrong(given, answers(given)).has_value();
    };
    if (!is_wrong(observation.given)) continue;
    AttentionCase smallest = shrink(observation.given, is_wrong);
    Location place = *clearly_wrong(smallest, answers(smallest));
    return Counterexample{std::move(smallest), std::move(place)};
  }
  return std::nullopt;
}

}  // namespace heedful
