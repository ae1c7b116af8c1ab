#include "heedful/inspection/diagnose_confusion.h"

#include <algorithm>

#include "heedful/inspection/diagnose.h"
#include "heedful/inspection/diagnose_hypotheses.h"
#include "heedful/inspection/diagnose_probes.h"

namespace heedful {
namespace {

using diagnosis::Fault;
using diagnosis::Hypothesis;

constexpr std::array<Outcome, kOutcomes> kAllOutcomes = {Outcome::named,    Outcome::one_named,
                                                         Outcome::in_class, Outcome::looks_correct,
                                                         Outcome::unknown,  Outcome::mistaken};

ProbeOptions all_probes(DataType type, const Hypothesis& truth) {
  ProbeOptions options;
  options.features = ProbeFeatures::all();
  options.features.hidden_nan = true;
  options.type = type;
  const auto holds = [&](std::string_view name) {
    return std::ranges::any_of(truth.parts, [&](const auto& part) { return part.fault->name == name; });
  };
  // Some mistakes are right under the usual declaration.
  if (holds("position_half_for_interleaved")) options.layout = RotaryLayout::interleaved;
  if (holds("causal_bottom_right")) options.alignment = Alignment::top_left;
  return options;
}

// What an implementation with these faults answers; probes on which its answer would have another shape are left out.
std::vector<Observation> observe(DataType type, const Hypothesis& truth) {
  std::vector<Observation> result;
  for (AttentionCase& probe : standard_probes(all_probes(type, truth))) {
    if (!truth.applies(probe)) continue;
    AttentionAnswer answer = diagnosis::simulate(probe, truth);
    const bool is_lse_alone = std::ranges::any_of(
        truth.parts, [](const auto& part) { return part.fault->touches == diagnosis::kLogSumExp; });
    answer.weights = {};
    if (!is_lse_alone) answer.lse = {};
    result.push_back({std::move(probe), std::move(answer)});
  }
  return result;
}

std::vector<std::string> names_of(const Hypothesis& hypothesis) {
  std::vector<std::string> names;
  for (const Hypothesis::Part& part : hypothesis.parts) names.emplace_back(part.fault->name);
  return names;
}

Outcome judge(const Diagnosis& d, const std::vector<std::string>& truth) {
  if (d.is_correct()) return Outcome::looks_correct;
  if (d.findings.empty()) return Outcome::unknown;
  const auto is_true = [&](const Finding& finding) { return finding.faults == truth; };
  const auto is_half_true = [&](const Finding& finding) {
    return finding.faults.size() == 1 && std::ranges::find(truth, finding.faults.front()) != truth.end();
  };
  if (d.findings.size() == 1 && is_true(d.findings.front())) return Outcome::named;
  if (d.findings.size() == 1 && is_half_true(d.findings.front())) return Outcome::one_named;
  const bool holds_it = std::ranges::any_of(d.findings, is_true) || std::ranges::any_of(d.findings, is_half_true);
  return holds_it ? Outcome::in_class : Outcome::mistaken;
}

ConfusionRow row_of(const Context& context, DataType type, const Hypothesis& truth) {
  ConfusionRow row{names_of(truth), truth.finding(0).text(), type, Outcome::looks_correct, {}, {}, 0};
  const std::vector<Observation> observations = observe(type, truth);
  if (observations.empty()) return row;
  DiagnoseOptions options;
  options.pairs = truth.parts.size() > 1;
  options.counterexample = false;
  const Diagnosis d = diagnose(context, observations, options);
  row.outcome = judge(d, row.truth);
  row.said = d.findings.empty() ? std::string(name(d.verdict)) : d.findings.front().text();
  for (const Finding& finding : d.findings) {
    if (finding.faults == row.truth) continue;
    if (finding.residual <= kFits) row.fitting.push_back(finding.text());
    if (finding.residual > kFits) ++row.near;
  }
  return row;
}

std::string row_text(const ConfusionRow& row) {
  std::string text = fmt::format("| {} | {} | {} | {} |", row.text, name(row.type), name(row.outcome), row.said);
  const std::size_t most = std::min<std::size_t>(row.fitting.size(), 4);
  std::vector<std::string> others(row.fitting.begin(), row.fitting.begin() + static_cast<std::ptrdiff_t>(most));
  if (row.fitting.size() > most) others.push_back(fmt::format("{} more", row.fitting.size() - most));
  return text + fmt::format(" {} | {} |\n", fmt::join(others, ", "), row.near);
}

}  // namespace

std::string_view name(Outcome outcome) {
  switch (outcome) {
    case Outcome::named:
      return "named";
    case Outcome::one_named:
      return "one of the two named";
    case Outcome::in_class:
      return "in a class";
    case Outcome::looks_correct:
      return "hidden by rounding";
    case Outcome::unknown:
      return "unknown";
    case Outcome::mistaken:
      return "mistaken";
  }
  fail("diagnose", "no such outcome");
}

std::array<std::size_t, kOutcomes> Confusion::count(DataType type) const {
  std::array<std::size_t, kOutcomes> counts{};
  for (const ConfusionRow& row : rows) {
    if (row.type == type) ++counts[static_cast<std::size_t>(row.outcome)];
  }
  return counts;
}

Confusion confuse_singles(const Context& context, const std::vector<DataType>& types) {
  Confusion confusion;
  for (const DataType type : types) {
    for (const Fault& fault : diagnosis::catalogue()) {
      if (fault.name == "empty_row_zero") continue;  // no fault where 0 is what was declared, as on every probe
      for (std::size_t form = 0; form < fault.variants.size(); ++form) {
        confusion.rows.push_back(row_of(context, type, {{{&fault, form}}, {}}));
      }
    }
  }
  return confusion;
}

Confusion confuse_pairs(const Context& context, DataType type, std::size_t first, std::size_t stride) {
  Confusion confusion;
  std::vector<const Fault*> forward;
  for (const Fault& fault : diagnosis::catalogue()) {
    if (!fault.is_backward() && fault.name != "empty_row_zero") forward.push_back(&fault);
  }
  std::size_t number = 0;
  for (std::size_t a = 0; a < forward.size(); ++a) {
    for (std::size_t b = a + 1; b < forward.size(); ++b) {
      if ((forward[a]->touches & forward[b]->touches) != 0) continue;
      if (number++ % stride != first) continue;
      const Hypothesis truth{{{forward[a], 0}, {forward[b], 0}}, {}};
      if (!observe(type, truth).empty()) confusion.rows.push_back(row_of(context, type, truth));
    }
  }
  return confusion;
}

std::string confusion_text(const Confusion& confusion) {
  std::vector<DataType> types;
  for (const ConfusionRow& row : confusion.rows) {
    if (std::ranges::find(types, row.type) == types.end()) types.push_back(row.type);
  }
  std::string page = "| type | cases |";
  for (const Outcome outcome : kAllOutcomes) page += fmt::format(" {} |", name(outcome));
  page += "\n|---|---|---|---|---|---|---|---|\n";
  for (const DataType type : types) {
    const std::array<std::size_t, kOutcomes> counts = confusion.count(type);
    std::size_t all = 0;
    for (const std::size_t count : counts) all += count;
    page += fmt::format("| {} | {} | {} |\n", name(type), all, fmt::join(counts, " | "));
  }
  page += "\nEvery case that was not named:\n\n";
  page +=
      "| in the code | type | outcome | best hypothesis | others that fit | too near to rule out "
      "|\n|---|---|---|---|---|---|\n";
  for (const ConfusionRow& row : confusion.rows) {
    if (row.outcome != Outcome::named) page += row_text(row);
  }
  return page;
}

}  // namespace heedful
