#include "heedful/inspection/diagnose.h"

#include <algorithm>
#include <cmath>

#include "heedful/inspection/diagnose_consistency.h"
#include "heedful/inspection/diagnose_counterexample.h"
#include "heedful/inspection/diagnose_hypotheses.h"
#include "heedful/inspection/diagnose_recover.h"

namespace heedful {
namespace {

using diagnosis::Evidence;
using diagnosis::Hypothesis;

// Beyond this a hypothesis is as wrong as it needs to be; simulating further cases would only say it louder.
constexpr double kHopeless = 1e6;

// A name must not be owed to chance: fewer than one accidental fit in a thousand verdicts is to be expected.
constexpr double kAccidents = 1e-3;

using Residual = double (*)(const Evidence&, Hypothesis&, double enough);

double forward(const Evidence& evidence, Hypothesis& hypothesis, double enough) {
  return evidence.forward(hypothesis, enough);
}
double backward(const Evidence& evidence, Hypothesis& hypothesis, double enough) {
  return evidence.backward(hypothesis, enough);
}

// Every hypothesis weighed; of the forms of one fault, or pair of faults, the best. Best first.
std::vector<Finding> weigh(const Context& context, const Evidence& evidence, std::vector<Hypothesis> hypotheses,
                           Residual residual, double enough) {
  std::vector<Finding> all(hypotheses.size());
  context.parallel_for(static_cast<Index>(hypotheses.size()), [&](Index at) {
    Hypothesis& hypothesis = hypotheses[static_cast<std::size_t>(at)];
    const double value = residual(evidence, hypothesis, enough);
    all[static_cast<std::size_t>(at)] = hypothesis.finding(value);
  });
  std::vector<Finding> best;
  for (Finding& finding : all) {
    if (!best.empty() && best.back().faults == finding.faults) {
      if (finding.residual < best.back().residual) best.back() = std::move(finding);
    } else {
      best.push_back(std::move(finding));
    }
  }
  std::ranges::stable_sort(best, {}, &Finding::residual);
  return best;
}

bool is_like(const Finding& finding, double best) {
  return finding.residual <= kFits || finding.residual < kMargin * best;
}

// The findings that cannot be told from the best one, which must fit; `all` is sorted.
std::vector<Finding> fitting(const std::vector<Finding>& all) {
  std::vector<Finding> result;
  if (all.empty() || all.front().residual > kFits) return result;
  std::ranges::copy_if(all, std::back_inserter(result),
                       [&](const Finding& finding) { return is_like(finding, all.front().residual); });
  return result;
}

void insert_sorted(std::vector<Finding>& all, const Finding& finding) {
  all.insert(std::ranges::upper_bound(all, finding.residual, {}, &Finding::residual), finding);
}

void decide(Diagnosis& d, std::vector<Finding> all, const Finding& correct, Verdict one, Verdict several) {
  d.verdict = Verdict::unknown;
  if (correct.residual <= kFits) {
    d.verdict = Verdict::correct;
    d.findings = {correct};
    return;
  }
  // What leaves the same residual as correct computes the same here: correct stands for all of it.
  std::erase_if(all, [&](const Finding& finding) { return finding.residual == correct.residual; });
  insert_sorted(all, correct);
  d.findings = fitting(all);
  if (d.findings.empty()) {
    d.next = all.front();
    return;
  }
  if (d.findings.size() < all.size()) d.next = all[d.findings.size()];
  d.verdict = d.findings.size() == 1 ? one : several;
}

// Takes a name back where `tried` hypotheses on so few wrong numbers could have fitted by chance.
void doubt_if_chance_would_do(Diagnosis& d, const Evidence& evidence, bool is_backward, std::size_t tried) {
  if (d.verdict != Verdict::fault && d.verdict != Verdict::two_faults) return;
  if (evidence.log_chance(is_backward) + std::log(static_cast<double>(tried)) <= std::log(kAccidents)) return;
  d.verdict = d.verdict == Verdict::fault ? Verdict::one_of : Verdict::one_pair_of;
  d.notes.push_back(
      fmt::format("only one of {} hypotheses fits, but so few numbers are wrong that chance would do: "
                  "give more rows",
                  tried));
}

void hint_at_precision(Diagnosis& d, const Evidence& evidence) {
  const DataType declared = evidence.observations().front().given.declared.type;
  for (const DataType coarser : {DataType::f32, DataType::f16, DataType::bf16}) {
    if (diagnosis::rounding_of(coarser).bits >= diagnosis::rounding_of(declared).bits) continue;
    if (evidence.forward_in(coarser) > kFits) continue;
    d.notes.push_back(
        fmt::format("the error is no larger than computing in {} would leave: is something kept in less "
                    "than {}?",
                    name(coarser), name(declared)));
    return;
  }
}

// An output without a single finite number says that something broke, not what: many a fault would do.
bool is_without_numbers(const Evidence& evidence) {
  return std::ranges::none_of(evidence.observations(), [](const Observation& observation) {
    return std::ranges::any_of(observation.answer.out, [](double x) { return std::isfinite(x); });
  });
}

void list_exclusions(Diagnosis& d, const std::vector<Finding>& singles, double correct) {
  for (const Finding& finding : singles) {
    (is_like(finding, correct) ? d.not_excluded : d.excluded).push_back(finding.faults.front());
  }
}

// Dropout differs from run to run, so it is recognised by what it leaves of each weight, not by simulation.
bool find_dropout(Diagnosis& d, const Evidence& evidence) {
  std::optional<diagnosis::Dropout> dropout;
  for (std::size_t at = 0; at < evidence.observations().size(); ++at) {
    const std::optional<diagnosis::Dropout> here =
        diagnosis::find_dropout(evidence.correct(at), evidence.observations()[at].answer);
    if (!here) continue;
    if (dropout && std::abs(dropout->rate - here->rate) > 0.01) return false;
    dropout = {here->rate, std::max(here->residual, dropout ? dropout->residual : 0)};
  }
  if (!dropout) return false;
  d.verdict = Verdict::fault;
  d.findings = {{{"numerics_dropout"}, {fmt::format("rate {:.3g}", dropout->rate)}, dropout->residual}};
  d.notes.push_back(
      "dropout was read off the recovered weights; rows whose weights cannot be recovered were not judged");
  return true;
}

// Faults of the forward pass that its rounding hides may still show in the gradients.
std::vector<Hypothesis> hidden_forward_faults(const Evidence& evidence) {
  std::vector<Hypothesis> hidden = diagnosis::single_hypotheses(evidence, false);
  std::erase_if(hidden, [&](Hypothesis& hypothesis) { return !(evidence.forward(hypothesis, kFits) <= kFits); });
  return hidden;
}

// What was drawn for this answer cannot be simulated: neither its gradients nor a smaller case.
bool is_drawn_anew(const Diagnosis& d) {
  return d.verdict == Verdict::fault && d.findings.front().faults.front() == "numerics_dropout";
}

// Weighs single faults, then pairs, of one side of the computation.
void judge(Diagnosis& d, const Context& context, const Evidence& evidence, const DiagnoseOptions& options,
           bool is_backward) {
  const Residual residual = is_backward ? backward : forward;
  const std::vector<Hypothesis> singles = diagnosis::single_hypotheses(evidence, is_backward);
  Hypothesis none;
  const Finding correct = none.finding(residual(evidence, none, HUGE_VAL));
  d.correct.residual = std::max(d.correct.residual, correct.residual);
  if (!is_backward && correct.residual > kFits && is_without_numbers(evidence)) {
    d.notes.push_back("out holds no finite number, which many mistakes would do: find the first step that makes one");
    return;
  }
  const std::vector<Finding> weighed = weigh(context, evidence, singles, residual, kHopeless);
  std::vector<Finding> candidates = weighed;
  if (is_backward && correct.residual > kFits) {
    for (const Finding& finding : weigh(context, evidence, hidden_forward_faults(evidence), backward, kHopeless)) {
      insert_sorted(candidates, finding);
    }
  }
  const std::size_t tried = singles.size() + candidates.size() - weighed.size();
  decide(d, std::move(candidates), correct, Verdict::fault, Verdict::one_of);
  d.residuals.insert(d.residuals.end(), weighed.begin(), weighed.end());
  list_exclusions(d, weighed, d.is_correct() ? correct.residual : 0);
  doubt_if_chance_would_do(d, evidence, is_backward, tried);
  if (!d.findings.empty()) return;
  if (!is_backward && find_dropout(d, evidence)) return;
  if (!options.pairs) return;

  constexpr double kMostPairWork = 1 << 22;
  if (evidence.work() > kMostPairWork) {
    d.notes.push_back("pairs of faults were not tried: the case is too large; give fewer heads or rows");
    if (!is_backward) hint_at_precision(d, evidence);
    return;
  }
  const Finding next = d.next;
  const std::vector<Hypothesis> pairs = diagnosis::pair_hypotheses(evidence, singles);
  decide(d, weigh(context, evidence, pairs, residual, kFits * kMargin), correct, Verdict::two_faults,
         Verdict::one_pair_of);
  doubt_if_chance_would_do(d, evidence, is_backward, pairs.size());
  if (d.findings.empty()) {
    d.next = next;
    if (!is_backward) hint_at_precision(d, evidence);
  }
}

void locate(Diagnosis& d, const Evidence& evidence, bool is_backward) {
  for (std::size_t at = 0; at < evidence.observations().size(); ++at) {
    const AttentionAnswer& answer = evidence.observations()[at].answer;
    const diagnosis::Walk& correct = evidence.correct(at);
    if (is_backward && !correct.given.has_gradients()) continue;
    std::vector<Location> places = is_backward ? diagnosis::wrong_places(diagnosis::walk_back(correct), answer)
                                               : diagnosis::wrong_places(correct, answer);
    std::ranges::move(places, std::back_inserter(d.locations));
  }
}

// The hypothesis behind a finding.
Hypothesis hypothesis_of(const Finding& finding) {
  Hypothesis result;
  for (std::size_t at = 0; at < finding.faults.size(); ++at) {
    const diagnosis::Fault& fault = diagnosis::find_fault(finding.faults[at]);
    const auto form = std::ranges::find(fault.variants, finding.forms[at], &diagnosis::Variant::label);
    const auto index = form == fault.variants.end() ? 0 : form - fault.variants.begin();
    result.parts.push_back({&fault, static_cast<std::size_t>(index)});
  }
  result.other_empty_row = finding.other_empty_row;
  return result;
}

void judge_gradients_of_wrong_forward(Diagnosis& d, const Context& context, const Evidence& evidence) {
  if (d.findings.empty()) {
    d.notes.push_back("the gradients were not judged: what the forward pass computes is unknown");
    return;
  }
  if (is_drawn_anew(d)) {
    d.notes.push_back("the gradients were not judged: which weights were dropped is unknown");
    return;
  }
  d.judged_gradients = true;
  Hypothesis none;
  const Hypothesis forward_found = hypothesis_of(d.findings.front());
  if (diagnosis::gradient_disagreement(evidence, forward_found) <= kFits) {
    d.notes.push_back("the gradients are those of this forward pass: the backward pass adds no mistake of its own");
  } else if (evidence.backward(none, kHopeless) <= kFits) {
    d.notes.push_back("the gradients are those of correct attention, not of what the forward pass computes");
  } else {
    const std::vector<Finding> weighed =
        weigh(context, evidence, diagnosis::single_hypotheses(evidence, true), backward, kHopeless);
    const std::vector<Finding> fit = fitting(weighed);
    d.notes.push_back(fit.empty() ? std::string("the gradients hold a mistake of their own, which is unknown")
                                  : fmt::format("the gradients hold a mistake of their own: {}", fit.front().text()));
  }
}

void add_counterexample(Diagnosis& d, const Evidence& evidence) {
  const Hypothesis found = hypothesis_of(d.findings.front());
  d.counterexample = find_counterexample(
      [&](const AttentionCase& given) {
        require(found.applies(given), "diagnose", "the fault cannot show here");
        AttentionAnswer answer = diagnosis::simulate(given, found);
        answer.weights = {};
        if (!evidence.has_lse()) answer.lse = {};
        return answer;
      },
      evidence.observations());
}

}  // namespace

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::correct:
      return "correct";
    case Verdict::fault:
      return "fault";
    case Verdict::one_of:
      return "one_of";
    case Verdict::two_faults:
      return "two_faults";
    case Verdict::one_pair_of:
      return "one_pair_of";
    case Verdict::unknown:
      return "unknown";
  }
  fail("diagnose", "no such verdict");
}

std::string Finding::text() const {
  if (faults.empty()) return "correct";
  std::string result;
  for (std::size_t at = 0; at < faults.size(); ++at) {
    result += (at > 0 ? " + " : "") + faults[at];
    if (!forms[at].empty()) result += " (" + forms[at] + ")";
  }
  return result;
}

bool Diagnosis::names(std::string_view fault) const {
  return std::ranges::any_of(findings, [&](const Finding& finding) {
    return std::ranges::find(finding.faults, fault) != finding.faults.end();
  });
}

std::string Diagnosis::fix() const {
  std::string result;
  if (findings.empty()) return result;
  for (const std::string& fault : findings.front().faults) {
    result += fmt::format("{}{}", result.empty() ? "" : " ", diagnosis::find_fault(fault).fix);
  }
  return result;
}

Diagnosis diagnose(const Context& context, std::span<const Observation> observations,
                   const DiagnoseOptions& options) {
  const Evidence evidence(observations);
  Diagnosis d;
  judge(d, context, evidence, options, false);
  if (!d.is_correct()) {
    locate(d, evidence, false);
    if (evidence.has_gradients()) judge_gradients_of_wrong_forward(d, context, evidence);
  } else if (evidence.has_gradients()) {
    d.judged_gradients = true;
    judge(d, context, evidence, options, true);
    if (!d.is_correct()) locate(d, evidence, true);
  }
  const bool can_simulate = !d.is_correct() && !d.findings.empty() && !is_drawn_anew(d);
  if (options.counterexample && can_simulate) add_counterexample(d, evidence);
  return d;
}

AttentionAnswer simulate(const AttentionCase& given, std::span<const std::string> faults) {
  check_case(given);
  Hypothesis hypothesis;
  for (const std::string& fault : faults) hypothesis.parts.push_back({&diagnosis::find_fault(fault), 0});
  require(hypothesis.applies(given), "diagnose", "fault: expected one that this case can show, got {}",
          hypothesis.finding(0).text());
  return diagnosis::simulate(given, hypothesis);
}

}  // namespace heedful
