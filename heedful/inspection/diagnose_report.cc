#include "heedful/inspection/diagnose_report.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heedful/inspection/diagnose_recover.h"
#include "heedful/inspection/diagnose_tell.h"
#include "heedful/inspection/faults.h"

namespace heedful {
namespace {

constexpr std::size_t kWidth = 100, kLabel = 13, kMostListed = 8;

// Appends "label  text", wrapped at kWidth under itself.
void add(std::string& page, std::string_view label, std::string_view text) {
  std::string line(label);
  line.resize(kLabel, ' ');
  std::size_t used = kLabel;
  const auto width_of = [](std::string_view word) {  // bytes that begin a character
    return static_cast<std::size_t>(std::ranges::count_if(word, [](char c) { return (c & 0xC0) != 0x80; }));
  };
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, space);
    text.remove_prefix(std::min(space + 1, text.size()));
    if (used > kLabel && used + width_of(word) + 1 > kWidth) {
      page += line + "\n";
      line.assign(kLabel, ' ');
      used = kLabel;
    }
    if (used > kLabel) {
      line += ' ';
      ++used;
    }
    line += word;
    used += width_of(word);
  }
  page += line + "\n";
}

std::string number(double value) {
  return std::isinf(value) ? (value > 0 ? "∞" : "−∞") : fmt::format("{:.3g}", value);
}

// Two numbers with as many digits as it takes to tell them apart.
std::string expected_and_got(double expected, double got, std::string_view format) {
  int digits = 3;
  const auto text = [&](double value) {
    return std::isfinite(value) ? fmt::format("{:.{}g}", value, digits) : number(value);
  };
  while (digits < std::numeric_limits<double>::max_digits10 && text(expected) == text(got)) ++digits;
  return fmt::format(fmt::runtime(format), fmt::arg("expected", text(expected)), fmt::arg("got", text(got)));
}

// "0–3, 5"
std::string ranges(const std::vector<Index>& indices) {
  std::string result;
  for (std::size_t at = 0; at < indices.size();) {
    std::size_t end = at;
    while (end + 1 < indices.size() && indices[end + 1] == indices[end] + 1) ++end;
    result += fmt::format("{}{}", result.empty() ? "" : ", ", indices[at]);
    if (end > at) result += fmt::format("–{}", indices[end]);
    at = end + 1;
  }
  return result;
}

// "probe: a, b and 3 more", as much as one line holds.
std::string list(std::string_view probe, std::span<const std::string> names) {
  constexpr std::size_t kRoom = kWidth - kLabel - std::string_view(" and 100 more").size();
  std::string result = fmt::format("{}: {}", probe, names.front());
  std::size_t at = 1;
  for (; at < names.size() && result.size() + 2 + names[at].size() <= kRoom; ++at) result += ", " + names[at];
  if (at < names.size()) result += fmt::format(" and {} more", names.size() - at);
  return result;
}

// "a, which alone fits": of several findings only the best may be within rounding, the others merely near.
std::string headline_of_several(const Diagnosis& d, std::string_view kind) {
  const auto fit =
      std::ranges::count_if(d.findings, [](const Finding& finding) { return finding.residual <= kFits; });
  if (d.findings.size() == 1) return fmt::format("perhaps {}", d.findings.front().text());
  if (fit == 1) {
    return fmt::format("most likely {}: it alone fits, but {} {} not 100 times worse", d.findings.front().text(),
                       d.findings.size() - 1, d.findings.size() == 2 ? "other is" : "others are");
  }
  return fmt::format("one of {} {} that this data cannot tell apart", d.findings.size(), kind);
}

std::string headline(const Diagnosis& d, DataType type) {
  switch (d.verdict) {
    case Verdict::correct:
      return fmt::format("correct on this data: no number is further than {} σ of {} rounding away",
                         number(d.correct.residual), name(type));
    case Verdict::fault:
      return d.findings.front().text();
    case Verdict::one_of:
      return headline_of_several(d, "faults");
    case Verdict::two_faults:
      return "two faults: " + d.findings.front().text();
    case Verdict::one_pair_of:
      return "two faults: " + headline_of_several(d, "pairs");
    case Verdict::unknown:
      return "unknown: wrong, and nothing in the catalogue explains it";
  }
  fail("diagnose", "no such verdict");
}

void add_findings(std::string& page, const Diagnosis& d, DataType type) {
  for (const std::string& fault : d.findings.front().faults) add(page, "", diagnosis::find_fault(fault).mistake);
  if (d.findings.size() == 1) {
    add(page, "evidence",
        fmt::format("residual {} σ under this hypothesis (up to {} is {} rounding); next best {} {} σ; correct {} σ",
                    number(d.findings.front().residual), kFits, name(type), d.next.text(), number(d.next.residual),
                    number(d.correct.residual)));
    return;
  }
  for (std::size_t at = 0; at < std::min(d.findings.size(), kMostListed); ++at) {
    const Finding& finding = d.findings[at];
    add(page, at == 0 ? "candidates" : "",
        fmt::format("{} {} σ{}", finding.text(), number(finding.residual),
                    finding.residual <= kFits ? "" : ", too near to rule out"));
  }
  if (d.findings.size() > kMostListed) add(page, "", fmt::format("and {} more", d.findings.size() - kMostListed));
}

void add_places(std::string& page, const Diagnosis& d) {
  constexpr std::size_t kMostPlaces = 3;
  for (std::size_t at = 0; at < std::min(d.locations.size(), kMostPlaces); ++at) {
    const Location& place = d.locations[at];
    add(page, at == 0 ? "where" : "",
        fmt::format("{}: {} wrong in {} of {} numbers, first at [{}]: {}; batches {}; heads {}; rows {}", place.which,
                    place.array, place.wrong, place.total, fmt::join(place.first, ", "),
                    expected_and_got(place.expected, place.got, "expected {expected}, got {got}"),
                    ranges(place.batches), ranges(place.heads), ranges(place.rows)));
  }
  if (d.locations.size() > kMostPlaces) {
    add(page, "", fmt::format("and {} more arrays", d.locations.size() - kMostPlaces));
  }
}

std::string describe_weights(const Diagnosis& d, std::span<const Observation> observations) {
  for (const Location& place : d.locations) {
    for (const Observation& observation : observations) {
      if (observation.given.name != place.which) continue;
      const diagnosis::Recipe recipe = diagnosis::correct_recipe(observation.given.declared);
      const std::string text =
          diagnosis::describe_weights(diagnosis::walk(observation.given, recipe), observation.answer);
      if (!text.empty()) return fmt::format("{}, {}", observation.given.name, text);
    }
  }
  return {};
}

// "[[1, 0], [0, 1]]" of the last two axes of the first two; short cases only.
std::string matrix(const Tensor<double, 4>& x) {
  std::string result;
  for (Index b = 0; b < x.extent(0); ++b) {
    for (Index h = 0; h < x.extent(1); ++h) {
      result += result.empty() ? "[" : " [";
      for (Index t = 0; t < x.extent(2); ++t) {
        result += t > 0 ? ", [" : "[";
        for (Index d = 0; d < x.extent(3); ++d) result += fmt::format("{}{:.3g}", d > 0 ? ", " : "", x(b, h, t, d));
        result += "]";
      }
      result += "]";
    }
  }
  return result;
}

void add_counterexample(std::string& page, const Counterexample& small) {
  const AttentionCase& c = small.given;
  const DeclaredAttention& declared = c.declared;
  constexpr Index kMostShown = 24;
  std::string text =
      fmt::format("B={} H={} G={} Tq={} Tk={} D={} E={}", c.B(), c.H(), c.G(), c.Tq(), c.Tk(), c.D(), c.E());
  if (declared.causal) text += ", causal";
  if (declared.window > 0) text += fmt::format(", window {}", declared.window);
  if (!declared.key_lengths.empty()) text += fmt::format(", lengths {}", fmt::join(declared.key_lengths, " "));
  if (c.q.size() + c.k.size() + c.v.size() <= kMostShown) {
    text += fmt::format(": q {} k {} v {}", matrix(c.q), matrix(c.k), matrix(c.v));
  }
  text += fmt::format(" gives {}[{}] = {}", small.place.array, fmt::join(small.place.first, ", "),
                      expected_and_got(small.place.expected, small.place.got, "{got}, not {expected}"));
  add(page, "smallest", text);
}

void add_not_excluded(std::string& page, const Diagnosis& d, const AttentionCase& given) {
  if (d.not_excluded.empty()) {
    add(page, "excluded", fmt::format("all {} faults of the catalogue", d.excluded.size()));
    return;
  }
  add(page, "excluded",
      fmt::format("{} of {} faults; {} would look the same here. The probe that shows them:", d.excluded.size(),
                  d.excluded.size() + d.not_excluded.size(), d.not_excluded.size()));
  const RotaryLayout layout = given.declared.rotary ? given.declared.rotary->layout : RotaryLayout::half_split;
  for (const TellingProbe& probe : telling_probes(d.not_excluded, given.declared.type, layout)) {
    add(page, "", list(probe.probe.empty() ? "none in this type" : probe.probe, probe.faults));
  }
}

nlohmann::json finding_json(const Finding& finding) {
  return {{"faults", finding.faults}, {"forms", finding.forms}, {"residual", finding.residual}};
}

nlohmann::json place_json(const Location& place) {
  return {{"case", place.which},  {"array", place.array}, {"first", place.first}, {"expected", place.expected},
          {"got", place.got},     {"wrong", place.wrong}, {"total", place.total}, {"batches", place.batches},
          {"heads", place.heads}, {"rows", place.rows}};
}

// Nested as the array's axes are.
template <class T, int Rank>
nlohmann::json nested_json(View<const T, Rank> x) {
  nlohmann::json rows = nlohmann::json::array();
  for (Index at = 0; at < x.extent(0); ++at) {
    if constexpr (Rank == 1) {
      rows.push_back(x[at]);
    } else {
      rows.push_back(nested_json<T, Rank - 1>(x[at]));
    }
  }
  return rows;
}

// The wrong number, the inputs that lead to it, and of what was declared that which a text report shows.
nlohmann::json counterexample_json(const Counterexample& small) {
  const AttentionCase& c = small.given;
  nlohmann::json json = place_json(small.place);
  json["causal"] = c.declared.causal;
  if (c.declared.window > 0) json["window"] = c.declared.window;
  if (!c.declared.key_lengths.empty()) json["key_lengths"] = c.declared.key_lengths;
  const auto add = [&](const char* name, const auto& x) {
    if (is_given(x)) json[name] = nested_json(x.view());
  };
  add("q", c.q);
  add("k", c.k);
  add("v", c.v);
  add("mask", c.keep);
  add("bias", c.bias);
  add("dout", c.dout);
  return json;
}

}  // namespace

std::string diagnosis_text(const Diagnosis& d, std::span<const Observation> observations) {
  const DataType type = observations.front().given.declared.type;
  std::string page;
  add(page, "verdict", headline(d, type));
  if (d.is_correct()) {
    add_not_excluded(page, d, observations.front().given);
  } else {
    if (!d.findings.empty()) add_findings(page, d, type);
    if (d.findings.empty()) {
      add(page, "evidence",
          fmt::format("residual {} σ under correct (up to {} is {} rounding){}", number(d.correct.residual), kFits,
                      name(type),
                      d.next.faults.empty()
                          ? ""
                          : fmt::format("; nearest fault {} {} σ", d.next.text(), number(d.next.residual))));
    }
    add_places(page, d);
    const std::string weights = describe_weights(d, observations);
    if (!weights.empty()) add(page, "weights", weights);
    if (d.counterexample) add_counterexample(page, *d.counterexample);
    if (!d.fix().empty()) add(page, "fix", d.fix());
  }
  for (const std::string& note : d.notes) add(page, "note", note);
  return page;
}

nlohmann::json diagnosis_json(const Diagnosis& d, std::span<const Observation> observations) {
  nlohmann::json json;
  json["verdict"] = name(d.verdict);
  json["fault"] = d.findings.size() == 1 && d.findings.front().faults.size() == 1
                      ? nlohmann::json(d.findings.front().faults.front())
                      : nlohmann::json(nullptr);
  json["findings"] = nlohmann::json::array();
  for (const Finding& finding : d.findings) json["findings"].push_back(finding_json(finding));
  const double best = d.findings.empty() ? d.next.residual : d.findings.front().residual;
  json["confidence"] = {{"residual", best},
                        {"next", d.next.text()},
                        {"next_residual", d.next.residual},
                        {"margin", best > 0 ? d.next.residual / best : HUGE_VAL}};
  json["residuals"] = {{"correct", d.correct.residual}};
  for (const Finding& finding : d.residuals) json["residuals"][finding.faults.front()] = finding.residual;
  json["location"] = nlohmann::json::array();
  for (const Location& place : d.locations) json["location"].push_back(place_json(place));
  json["excluded"] = d.excluded;
  json["not_excluded"] = nlohmann::json::array();
  if (!observations.empty() && !d.not_excluded.empty()) {
    const DeclaredAttention& declared = observations.front().given.declared;
    const RotaryLayout layout = declared.rotary ? declared.rotary->layout : RotaryLayout::half_split;
    for (const TellingProbe& probe : telling_probes(d.not_excluded, declared.type, layout)) {
      json["not_excluded"].push_back({{"probe", probe.probe}, {"faults", probe.faults}});
    }
  }
  json["fix"] = d.fix();
  json["weights"] = describe_weights(d, observations);
  json["notes"] = d.notes;
  json["judged_gradients"] = d.judged_gradients;
  if (d.counterexample) json["smallest"] = counterexample_json(*d.counterexample);
  return json;
}

std::string catalogue_text() {
  std::string page;
  std::string_view group;
  Index forward = 0, backward = 0;
  for (const diagnosis::Fault& fault : diagnosis::catalogue()) {
    if (name(fault.group) != group) page += fmt::format("\n{}\n", group = name(fault.group));
    page += fmt::format("  {:<34} {}\n  {:<34} looks: {}\n", fault.name, fault.mistake, "", fault.tell);
    ++(fault.is_backward() ? backward : forward);
  }
  return fmt::format("{} faults in the forward pass, {} in the backward pass.\n{}", forward, backward, page);
}

nlohmann::json catalogue_json() {
  nlohmann::json json = nlohmann::json::array();
  for (const diagnosis::Fault& fault : diagnosis::catalogue()) {
    std::vector<std::string> forms;
    for (const diagnosis::Variant& variant : fault.variants) {
      if (!variant.label.empty()) forms.push_back(variant.label);
    }
    json.push_back({{"name", fault.name},
                    {"group", name(fault.group)},
                    {"pass", fault.is_backward() ? "backward" : "forward"},
                    {"mistake", fault.mistake},
                    {"looks", fault.tell},
                    {"fix", fault.fix},
                    {"forms", forms}});
  }
  return json;
}

}  // namespace heedful
