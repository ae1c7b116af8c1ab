#include "heedful/inspection/diagnose_tell.h"

#include <algorithm>

#include "heedful/inspection/diagnose_hypotheses.h"
#include "heedful/inspection/diagnose_probes.h"

namespace heedful {
namespace {

using diagnosis::Hypothesis;

// The distance of any form of the fault from correct: the nearest form counts.
double distance_from_correct(const AttentionCase& probe, const diagnosis::Walk& correct,
                             const diagnosis::Fault& fault) {
  double nearest = HUGE_VAL;
  bool applies = false;
  for (std::size_t form = 0; form < fault.variants.size(); ++form) {
    const Hypothesis hypothesis{{{&fault, form}}, {}};
    if (!hypothesis.applies(probe)) continue;
    applies = true;
    AttentionAnswer answer = diagnosis::simulate(probe, hypothesis);
    if (fault.touches != diagnosis::kLogSumExp) answer.lse = {};
    double residual = diagnosis::forward_residual(correct, answer);
    if (fault.is_backward() && probe.has_gradients()) {
      residual = diagnosis::backward_residual(diagnosis::walk_back(correct), answer);
    }
    nearest = std::min(nearest, residual);
  }
  return applies ? nearest : 0;
}

}  // namespace

std::vector<TellingProbe> telling_probes(std::span<const std::string> faults, DataType type, RotaryLayout layout) {
  ProbeOptions options;
  options.features = ProbeFeatures::all();
  options.type = type;
  options.layout = layout;
  options.features.hidden_nan = true;
  std::vector<AttentionCase> probes = standard_probes(options);
  std::ranges::stable_partition(probes, [](const AttentionCase& probe) { return probe.name != "hidden_nan"; });
  options.alignment = Alignment::top_left;
  for (AttentionCase& probe : standard_probes(options)) {
    if (probe.name != "grouped") continue;
    probe.name += ", top_left";
    probes.push_back(std::move(probe));
  }
  options.layout = layout == RotaryLayout::interleaved ? RotaryLayout::half_split : RotaryLayout::interleaved;
  for (AttentionCase& probe : standard_probes(options)) {
    if (probe.name != "rotary") continue;
    probe.name += options.layout == RotaryLayout::interleaved ? ", interleaved" : ", half-split";
    probes.push_back(std::move(probe));
  }
  std::vector<TellingProbe> result;
  for (const AttentionCase& probe : probes) result.push_back({probe.name, {}});
  result.push_back({"", {}});
  std::vector<std::string> left(faults.begin(), faults.end());
  for (std::size_t at = 0; at < probes.size() && !left.empty(); ++at) {
    const diagnosis::Recipe recipe = diagnosis::correct_recipe(probes[at].declared);
    const diagnosis::Walk correct = diagnosis::walk(probes[at], recipe);
    std::erase_if(left, [&](const std::string& fault) {
      if (distance_from_correct(probes[at], correct, diagnosis::find_fault(fault)) < kMargin) return false;
      result[at].faults.push_back(fault);
      return true;
    });
  }
  result.back().faults = std::move(left);
  std::erase_if(result, [](const TellingProbe& probe) { return probe.faults.empty(); });
  return result;
}

}  // namespace heedful
