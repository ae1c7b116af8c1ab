#include <algorithm>

#include "heedful/inspection/attention_map.h"
#include "heedful/lab/experiments.h"
#include "heedful/lab/removal.h"
#include "heedful/lab/training_runs.h"
#include "heedful/report/claim.h"

namespace heedful {
namespace {

// The article's mean weights of the heaviest keys, by layer and head.
constexpr const char* kPrinted[2][4] = {{"0.835", "0.416", "0.996", "0.767"}, {"0.355", "0.369", "0.365", "0.391"}};

// In how many of these models some head points straight back at the question.
Index with_pointer(const Lab& lab, std::span<const RunResult> results) {
  Index count = 0;
  for (const RunResult& result : results) {
    const auto table =
        pointer_table<float>(attention_maps<float>(lab.context(), result.decoder, map_sequence()), 0, kAnswerBegin);
    count += std::ranges::any_of(table,
                                 [](const Pointer& p) { return p.offset == -kAnswerBegin && p.mean_weight >= 0.5; });
  }
  return count;
}

}  // namespace

void run_map(Report& report, const Lab& lab) {
  const std::string source = "article, §attention map";
  const Decoder<double>& decoder = lab.copy_model();
  const auto maps = attention_maps<double>(lab.context(), decoder, map_sequence());
  const auto table = pointer_table<double>(maps, 0, kAnswerBegin);
  Table shown{"sequence 17 3 0 12 7 9 SEP 17 3 0 12 7: positions 6 … 11 must emit what stands at keys 0 … 5",
              {"layer", "head", "heaviest key of outputs 6 … 11", "key − output", "mean weight", "article"},
              {}};
  Index pointers = 0, same = 0;
  double best = 0;
  for (const Pointer& p : table) {
    const char* printed = kPrinted[p.layer][p.head];
    shown.rows.push_back(
        {fmt::format("{}", p.layer + 1), fmt::format("{}", p.head), fmt::format("{}", fmt::join(p.keys, " ")),
         p.offset ? fmt::format("{:+}", *p.offset) : "varies", fmt::format("{:.3f}", p.mean_weight), printed});
    same += print_like(printed, p.mean_weight) == printed;
    pointers += p.layer == 0 && p.offset == -kAnswerBegin;
    if (p.offset == -kAnswerBegin) best = std::max(best, p.mean_weight);
  }
  report.tables.push_back(std::move(shown));
  report.claims.push_back(claim_at_least(
      {"some head is an almost pure pointer six back; its mean weight (0.996 there)", source}, 0.9, best));
  report.claims.push_back(
      claim_equal({"heads of the first layer that point six back throughout", source, false}, 3, pointers));
  report.notes.push_back(
      fmt::format("{} of the 8 mean weights print the article's three digits. Such figures hang on rounding through "
                  "1500 steps and are shown, not judged.",
                  same));

  MapFigure figure;
  figure.title = "attention of the article's copy model";
  figure.tokens = map_labels();
  figure.layers = decoder.config.layers;
  figure.heads = decoder.config.heads;
  figure.effect_label = "fall of the answer's log-probability, nats";
  for (const auto& map : maps) figure.weights.insert(figure.weights.end(), map.begin(), map.end());
  const auto effects = removal_effects(lab.context(), decoder);
  figure.effects.assign(effects.begin(), effects.end());
  report.maps.push_back(std::move(figure));

  const Index seeds = lab.full() ? 20 : 4;
  TrainOptions options;
  options.steps = lab.full() ? 1500 : 500;
  const auto results = train_all(lab, with_seeds(lab, options, seeds), {0.5, 1}, "pointer heads of other seeds");
  const Index pointing = with_pointer(lab, results);
  report.claims.push_back(claim_that(
      {fmt::format("of {} seeds trained {} steps, those with a head that puts at least half its weight six back",
                   seeds, options.steps),
       source, false},
      pointing == seeds, "all", fmt::format("{} of {}", pointing, seeds)));
}

}  // namespace heedful
