#include "heedful/inspection/diagnose_hypotheses.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace heedful::diagnosis {
namespace {

double work_of(const AttentionCase& given) {
  return static_cast<double>(given.B() * given.H()) * static_cast<double>(given.Tq() * given.Tk()) *
         static_cast<double>(given.D() + given.E());
}

// Whether two arrays hold the same numbers, NaN equal to NaN, but for differences far below any rounding.
template <int Rank>
bool is_same(const Tensor<double, Rank>& a, const Tensor<double, Rank>& b) {
  if (a.extents() != b.extents()) return false;
  for (Index at = 0; at < a.size(); ++at) {
    const double x = a.data()[at], y = b.data()[at];
    if (std::isnan(x) && std::isnan(y)) continue;
    if (!(std::abs(x - y) <= 1e-13 * (std::abs(x) + std::abs(y))) && x != y) return false;
  }
  return true;
}

}  // namespace

Recipe Hypothesis::recipe(const DeclaredAttention& declared) const {
  Recipe result = correct_recipe(declared);
  for (const Part& part : parts) part.fault->variants[part.form].spoil(result);
  result.other_empty_row = other_empty_row;
  return result;
}

bool Hypothesis::applies(const AttentionCase& given) const {
  return std::ranges::all_of(parts, [&](const Part& part) {
    const auto form_applies = part.fault->variants[part.form].applies;
    return (!part.fault->applies || part.fault->applies(given)) && (!form_applies || form_applies(given));
  });
}

Finding Hypothesis::finding(double residual) const {
  Finding result;
  for (const Part& part : parts) {
    result.faults.emplace_back(part.fault->name);
    result.forms.push_back(part.fault->variants[part.form].label);
  }
  result.residual = residual;
  result.other_empty_row = other_empty_row;
  return result;
}

Evidence::Evidence(std::span<const Observation> observations)
    : observations_(observations), order_(observations.size()) {
  require(!observations.empty(), "diagnose", "observations: expected at least 1, got 0");
  for (const Observation& observation : observations) work_ += work_of(observation.given);
  constexpr double kMostWork = 1 << 28;
  require(work_ <= kMostWork, "diagnose",
          "work: expected at most {} multiply-adds, B·H·Tq·Tk·(D + E), got {}; give fewer heads or rows", kMostWork,
          work_);
  for (const Observation& observation : observations) {
    check_case(observation.given);
    check_answer(observation.given, observation.answer);
    has_gradients_ = has_gradients_ || is_given(observation.answer.dq) || is_given(observation.answer.dk) ||
                     is_given(observation.answer.dv);
    has_lse_ = has_lse_ || is_given(observation.answer.lse);
  }
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::ranges::sort(order_, {}, [&](std::size_t at) { return work_of(observations[at].given); });
  for (const Observation& observation : observations) {
    recipes_.push_back(correct_recipe(observation.given.declared));
    correct_.push_back(walk(observation.given, recipes_.back()));
  }
}

Evidence::Outcome Evidence::forward_as_is(const Hypothesis& hypothesis, double enough) const {
  Outcome outcome{0, false};
  for (const std::size_t at : order_) {
    const Observation& observation = observations_[at];
    if (!hypothesis.applies(observation.given)) return {HUGE_VAL, false};
    const Recipe recipe = hypothesis.recipe(observation.given.declared);
    const Walk simulated = walk(observation.given, recipe);
    outcome.residual = std::max(outcome.residual, forward_residual(simulated, observation.answer));
    outcome.empty_by_mistake = outcome.empty_by_mistake || simulated.empty_by_mistake;
    if (outcome.residual > enough) break;
  }
  return outcome;
}

double Evidence::forward(Hypothesis& hypothesis, double enough) const {
  Outcome best = forward_as_is(hypothesis, enough);
  if (!best.empty_by_mistake) return best.residual;
  for (const EmptyRowValue value : {EmptyRowValue::nan, EmptyRowValue::mean}) {
    Hypothesis other = hypothesis;
    other.other_empty_row = value;
    const Outcome outcome = forward_as_is(other, enough);
    if (outcome.residual < best.residual) {
      best = outcome;
      hypothesis = other;
    }
  }
  return best.residual;
}

double Evidence::backward(const Hypothesis& hypothesis, double enough) const {
  double worst = 0;
  for (const std::size_t at : order_) {
    const Observation& observation = observations_[at];
    if (!observation.given.has_gradients()) continue;
    if (!hypothesis.applies(observation.given)) return HUGE_VAL;
    const Recipe recipe = hypothesis.recipe(observation.given.declared);
    const Walk simulated = walk(observation.given, recipe);
    worst = std::max(worst, backward_residual(walk_back(simulated), observation.answer));
    if (worst > enough) break;
  }
  return worst;
}

double Evidence::log_chance(bool of_gradients) const {
  double sum = 0;
  for (std::size_t at = 0; at < observations_.size(); ++at) {
    const auto& [given, answer] = observations_[at];
    if (!of_gradients) sum += diagnosis::log_chance(correct_[at], answer);
    if (of_gradients && given.has_gradients()) sum += diagnosis::log_chance(walk_back(correct_[at]), answer);
  }
  return sum;
}

double Evidence::forward_in(DataType coarser) const {
  double worst = 0;
  for (const Observation& observation : observations_) {
    AttentionCase given = observation.given.copy();
    given.declared.type = coarser;
    const Recipe recipe = correct_recipe(given.declared);
    worst = std::max(worst, forward_residual(walk(given, recipe), observation.answer));
  }
  return worst;
}

bool Evidence::is_visible(const Hypothesis& hypothesis) const {
  for (std::size_t at = 0; at < observations_.size(); ++at) {
    const AttentionCase& given = observations_[at].given;
    if (!hypothesis.applies(given)) continue;
    const Recipe recipe = hypothesis.recipe(given.declared);
    const Walk simulated = walk(given, recipe);
    if (!is_same(simulated.out, correct_[at].out)) return true;
    if (is_given(observations_[at].answer.lse) && !is_same(simulated.lse, correct_[at].lse)) return true;
    if (!is_given(given.dout)) continue;
    const GradientWalk wrong = walk_back(simulated), right = walk_back(correct_[at]);
    if (!is_same(wrong.dq, right.dq) || !is_same(wrong.dk, right.dk) || !is_same(wrong.dv, right.dv)) return true;
  }
  return false;
}

AttentionAnswer simulate(const AttentionCase& given, const Hypothesis& hypothesis) {
  const Recipe recipe = hypothesis.recipe(given.declared);
  const Walk walked = walk(given, recipe);
  AttentionAnswer answer;
  answer.out = rounded<4>(walked.type, walked.out);
  answer.weights = rounded<4>(walked.type, walked.weights);
  answer.lse = rounded<3>(walked.type, walked.lse);
  if (!given.has_gradients()) return answer;
  const GradientWalk back = walk_back(walked);
  answer.dq = rounded<4>(walked.type, back.dq);
  answer.dk = rounded<4>(walked.type, back.dk);
  answer.dv = rounded<4>(walked.type, back.dv);
  return answer;
}

std::vector<Hypothesis> single_hypotheses(const Evidence& evidence, bool backward) {
  std::vector<Hypothesis> result;
  for (const Fault& fault : catalogue()) {
    if (fault.is_backward() != backward || (fault.touches == kLogSumExp && !evidence.has_lse())) continue;
    for (std::size_t form = 0; form < fault.variants.size(); ++form) result.push_back({{{&fault, form}}, {}});
  }
  return result;
}

std::vector<Hypothesis> pair_hypotheses(const Evidence& evidence, std::span<const Hypothesis> singles) {
  std::vector<const Hypothesis*> visible;
  for (const Hypothesis& single : singles) {
    if (evidence.is_visible(single)) visible.push_back(&single);
  }
  std::vector<Hypothesis> result;
  for (std::size_t a = 0; a < visible.size(); ++a) {
    for (std::size_t b = a + 1; b < visible.size(); ++b) {
      const Hypothesis::Part first = visible[a]->parts.front(), second = visible[b]->parts.front();
      if ((first.fault->touches & second.fault->touches) == 0) result.push_back({{first, second}, {}});
    }
  }
  return result;
}

}  // namespace heedful::diagnosis
