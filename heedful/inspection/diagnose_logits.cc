#include "heedful/inspection/diagnose_logits.h"

#include <algorithm>
#include <cmath>

#include "heedful/core/error.h"
#include "heedful/inspection/diagnose_rounding.h"

namespace heedful {
namespace {

constexpr std::string_view kCached = "logits_cached", kUncached = "logits_uncached";

// Where the cached row of (sequence, step) comes from, if this is the mistake.
struct Source {
  Index sequence, step;
};
struct Explanation {
  std::string_view fault, mistake, fix;
  Source (*source)(const LogitsPair&, Index sequence, Index step);
};

Index steps(const LogitsPair& pair) {
  return pair.uncached.extent(1);
}

const Explanation kExplanations[] = {
    {"logits_one_step_behind", "each cached step answers for the token before it",
     "Take the logits of the token that was just fed, not of the one before.",
     [](const LogitsPair&, Index b, Index t) { return Source{b, std::max<Index>(t - 1, 0)}; }},
    {"logits_one_step_ahead", "each cached step answers for the token after it",
     "Feed one token a step and read the logits of that step.",
     [](const LogitsPair& pair, Index b, Index t) { return Source{b, std::min(t + 1, steps(pair) - 1)}; }},
    {"logits_of_other_sequence", "each sequence is answered from the next one's slots",
     "Index the cache by sequence.",
     [](const LogitsPair& pair, Index b, Index t) { return Source{(b + 1) % pair.uncached.extent(0), t}; }},
    {"logits_of_first_sequence", "every sequence is answered from the slots of sequence 0",
     "Index the cache by sequence.", [](const LogitsPair&, Index, Index t) { return Source{0, t}; }},
    {"logits_of_first_step", "every step repeats the first: the cache or the token does not advance",
     "Advance the offset and feed the new token.", [](const LogitsPair&, Index b, Index) { return Source{b, 0}; }},
};

double largest(const LogitsPair& pair, Index b, Index t) {
  double most = 0;
  for (Index v = 0; v < pair.uncached.extent(2); ++v) most = std::max(most, std::abs(pair.uncached(b, t, v)));
  return most;
}

double sigma(const LogitsPair& pair, Index b, Index t) {
  const diagnosis::Rounding& type = diagnosis::rounding_of(pair.type);
  return (8 * type.unit + 64 * type.accumulator_unit) * largest(pair, b, t) + type.tiny;
}

double row_residual(const LogitsPair& pair, Index b, Index t, const Source& from) {
  double worst = 0;
  for (Index v = 0; v < pair.uncached.extent(2); ++v) {
    const double distance =
        std::abs(pair.cached(b, t, v) - pair.uncached(from.sequence, from.step, v)) / sigma(pair, b, t);
    worst = std::max(worst, std::isnan(distance) ? HUGE_VAL : distance);
  }
  return worst;
}

double residual(const LogitsPair& pair, Source (*source)(const LogitsPair&, Index, Index)) {
  double worst = 0;
  for (Index b = 0; b < pair.uncached.extent(0); ++b) {
    for (Index t = 0; t < steps(pair); ++t) worst = std::max(worst, row_residual(pair, b, t, source(pair, b, t)));
  }
  return worst;
}

Source itself(const LogitsPair&, Index b, Index t) {
  return {b, t};
}

void locate(LogitsDiagnosis& d, const LogitsPair& pair) {
  for (Index t = 0; t < steps(pair); ++t) {
    for (Index b = 0; b < pair.uncached.extent(0); ++b) {
      ++d.steps;
      if (row_residual(pair, b, t, {b, t}) <= kFits) continue;
      if (d.wrong_steps++ > 0) continue;
      d.sequence = b;
      d.step = t;
      const auto is_right = [&](Index v) {
        return std::abs(pair.cached(b, t, v) - pair.uncached(b, t, v)) <= kFits * sigma(pair, b, t);
      };
      while (is_right(d.token)) ++d.token;
      d.expected = pair.uncached(b, t, d.token);
      d.got = pair.cached(b, t, d.token);
    }
  }
}

Tensor<double, 3> read(const ArrayMap& arrays, std::string_view name) {
  Array array = at(arrays, name);
  if (array.shape.size() == 2) array.shape.insert(array.shape.begin(), 1);
  return to_tensor<double, 3>(array, name);
}

}  // namespace

bool holds_logits(const ArrayMap& arrays) {
  return arrays.contains(kCached) || arrays.contains(kUncached);
}

LogitsPair read_logits(const ArrayMap& arrays, std::optional<DataType> type) {
  LogitsPair pair{read(arrays, kCached), read(arrays, kUncached), type.value_or(at(arrays, kCached).type)};
  for (const auto& [name, array] : arrays) {
    require(name == kCached || name == kUncached, "diagnose", "array '{}': expected {} and {} alone", name, kCached,
            kUncached);
  }
  diagnosis::rounding_of(pair.type);
  require(pair.cached.extents() == pair.uncached.extents(), "diagnose", "{}: expected the shape of {}, {}, got {}",
          kCached, kUncached, shape_text(pair.uncached.extents()), shape_text(pair.cached.extents()));
  require(pair.cached.size() > 0, "diagnose", "{}: expected logits, got shape {}", kCached,
          shape_text(pair.cached.extents()));
  for (const double logit : pair.uncached) {
    require(std::isfinite(logit), "diagnose", "{}: expected finite numbers, got {}", kUncached, logit);
  }
  return pair;
}

LogitsDiagnosis diagnose_logits(const LogitsPair& pair) {
  LogitsDiagnosis d;
  d.bit_identical = std::equal(pair.cached.begin(), pair.cached.end(), pair.uncached.begin());
  d.correct = residual(pair, itself);
  const bool is_correct = d.correct <= kFits;
  for (const Explanation& explanation : kExplanations) {
    const std::string fault(explanation.fault);
    const double here = residual(pair, explanation.source);
    d.residuals.push_back({.faults = {fault}, .forms = {""}, .residual = here});
    const bool looks_the_same = here <= kFits || (is_correct && here < kMargin * d.correct);
    (looks_the_same ? d.not_excluded : d.excluded).push_back(fault);
  }
  if (is_correct) {
    d.verdict = Verdict::correct;
    d.steps = pair.uncached.extent(0) * steps(pair);
    return d;
  }
  locate(d, pair);
  const Explanation* best = nullptr;
  double best_residual = HUGE_VAL;
  d.next = d.correct;
  for (std::size_t at = 0; at < d.residuals.size(); ++at) {
    const double here = d.residuals[at].residual;
    if (here < best_residual) {
      d.next = std::min(d.next, best_residual);
      best_residual = here;
      best = &kExplanations[at];
    } else {
      d.next = std::min(d.next, here);
    }
  }
  if (best_residual <= kFits && d.next >= kMargin * best_residual) {
    d.verdict = Verdict::fault;
    d.fault = best->fault;
    d.mistake = best->mistake;
    d.fix = best->fix;
  } else {
    d.next = best_residual;
  }
  return d;
}

std::string logits_text(const LogitsDiagnosis& d) {
  if (d.verdict == Verdict::correct) {
    return fmt::format("verdict      correct: with and without the cache the logits are {}\n",
                       d.bit_identical ? "bit for bit the same"
                                       : fmt::format("within {:.3g} σ of rounding, not bit-identical", d.correct)) +
           (d.not_excluded.empty()
                ? fmt::format("excluded     all {} exchanges\n", d.excluded.size())
                : fmt::format("excluded     {} of {} exchanges; more sequences or steps would show "
                              "the others:\n             {}\n",
                              d.excluded.size(), d.excluded.size() + d.not_excluded.size(),
                              fmt::join(d.not_excluded, ", ")));
  }
  std::string page = d.fault.empty()
                         ? std::string("verdict      unknown: the cache changes the logits, in no way known here\n")
                         : fmt::format("verdict      {}\n             {}\n", d.fault, d.mistake);
  page += fmt::format("evidence     {:.3g} σ from the same logits; next explanation {:.3g} σ\n", d.correct, d.next);
  page += fmt::format(
      "where        {} of {} steps; first in sequence {}, step {}, token {}: expected {:.6g}, got {:.6g}\n",
      d.wrong_steps, d.steps, d.sequence, d.step, d.token, d.expected, d.got);
  if (d.step > 0) page += fmt::format("note         all before step {} agree: look at what changes there\n", d.step);
  if (!d.fix.empty()) page += fmt::format("fix          {}\n", d.fix);
  return page;
}

nlohmann::json logits_json(const LogitsDiagnosis& d) {
  nlohmann::json json = {{"verdict", name(d.verdict)},
                         {"fault", d.fault.empty() ? nlohmann::json(nullptr) : nlohmann::json(d.fault)},
                         {"confidence", {{"next_residual", d.next}}},
                         {"residuals", {{"correct", d.correct}}},
                         {"location", nullptr},
                         {"excluded", d.excluded},
                         {"not_excluded", d.not_excluded},
                         {"bit_identical", d.bit_identical},
                         {"fix", d.fix}};
  for (const Finding& finding : d.residuals) json["residuals"][finding.faults.front()] = finding.residual;
  if (d.wrong_steps > 0) {
    json["location"] = {{"sequence", d.sequence}, {"step", d.step}, {"token", d.token},
                        {"expected", d.expected}, {"got", d.got},   {"wrong_steps", d.wrong_steps},
                        {"steps", d.steps}};
  }
  return json;
}

}  // namespace heedful
