#include <algorithm>
#include <cmath>

#include "heedful/inspection/attention_map.h"
#include "heedful/lab/counterfactual.h"
#include "heedful/lab/experiments.h"
#include "heedful/lab/removal.h"
#include "heedful/lab/statistics.h"
#include "heedful/report/claim.h"

namespace heedful {
namespace {

struct HeadPairs {
  std::vector<double> weights, effects;  // of every visible key of the answer's rows
};

HeadPairs pairs_of(const Tensor<double, 4>& map, const Tensor<double, 4>& effects, Index layer, Index head) {
  HeadPairs pairs;
  for (Index i = kAnswerBegin; i < map.extent(2); ++i) {
    for (Index j = 0; j <= i; ++j) {
      pairs.weights.push_back(map(0, head, i, j));
      pairs.effects.push_back(effects(layer, head, i, j));
    }
  }
  return pairs;
}

constexpr double kNoEffect = 0.01;  // nats, of an answer of six tokens

}  // namespace

void run_intervention(Report& report, const Lab& lab) {
  const std::string source = "article, trap 9; arXiv:1902.10186";
  const Decoder<double>& decoder = lab.copy_model();
  const auto maps = attention_maps<double>(lab.context(), decoder, map_sequence());
  lab.progress(0.6, "removing one key from one head at a time");
  const auto effects = removal_effects(lab.context(), decoder);
  const auto alternatives = furthest_alternatives(lab.context(), decoder, map_sequence(), kAnswerBegin);

  Table table{"answer rows: what a head weighs, and what the answer loses without it (nats)",
              {"layer", "head", "largest weight", "its effect", "largest effect", "its weight", "rank correlation",
               "other map, TV"},
              {}};
  HeadPairs all;
  double idle = 0, largest_distance = 0, largest_output_change = 0;
  for (Index l = 0; l < decoder.config.layers; ++l) {
    for (Index h = 0; h < decoder.config.heads; ++h) {
      const HeadPairs pairs = pairs_of(maps[static_cast<std::size_t>(l)], effects, l, h);
      const auto heaviest = static_cast<std::size_t>(std::ranges::max_element(pairs.weights) - pairs.weights.begin());
      const auto strongest =
          static_cast<std::size_t>(std::ranges::max_element(pairs.effects) - pairs.effects.begin());
      for (std::size_t i = 0; i < pairs.weights.size(); ++i) {
        if (std::abs(pairs.effects[i]) < kNoEffect) idle = std::max(idle, pairs.weights[i]);
      }
      const Alternative& other = alternatives[static_cast<std::size_t>(l * decoder.config.heads + h)];
      largest_distance = std::max(largest_distance, other.distance);
      largest_output_change = std::max(largest_output_change, other.output_change);
      table.rows.push_back(
          {fmt::format("{}", l + 1), fmt::format("{}", h), fmt::format("{:.3f}", pairs.weights[heaviest]),
           fmt::format("{:.3f}", pairs.effects[heaviest]), fmt::format("{:.3f}", pairs.effects[strongest]),
           fmt::format("{:.3f}", pairs.weights[strongest]),
           fmt::format("{:.2f}", rank_correlation(pairs.weights, pairs.effects)),
           fmt::format("{:.3f}", other.distance)});
      all.weights.insert(all.weights.end(), pairs.weights.begin(), pairs.weights.end());
      all.effects.insert(all.effects.end(), pairs.effects.begin(), pairs.effects.end());
    }
  }
  report.tables.push_back(std::move(table));
  const double correlation = rank_correlation(all.weights, all.effects);
  report.claims.push_back(
      claim_that({"weights do not rank effects: Spearman's correlation of weight and effect of removal, all heads",
                  source, false},
                 correlation < 0.9, "below 0.9", fmt::format("{:.2f}", correlation)));
  report.claims.push_back(claim_at_least({"a heavy key can be idle: the largest weight whose removal moves the "
                                          "answer's log-probability by less than 0.01",
                                          source, false},
                                         0.3, idle));
  report.claims.push_back(claim_at_least(
      {"another map, the same answer: total variation between a row and the furthest row with the same output",
       source, false},
      0.1, largest_distance));
  report.claims.push_back(claim_at_most({"… whose head output is the same to rounding: largest change", source}, 1e-9,
                                        largest_output_change));
  report.notes.emplace_back(
      "Removal hides one key from one query of one head; the row's other weights grow to sum to 1. The effect is "
      "what the "
      "log-probability of the six right tokens loses. The other map is the vertex, furthest in total variation, that "
      "a "
      "seeded search finds in the polytope of rows with the same output: only rows of more keys than head width + 1 "
      "have one.");
}

}  // namespace heedful
