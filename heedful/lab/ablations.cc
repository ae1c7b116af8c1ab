#include <algorithm>

#include "heedful/lab/experiments.h"
#include "heedful/lab/statistics.h"
#include "heedful/lab/training_runs.h"
#include "heedful/report/claim.h"

namespace heedful {
namespace {

double answers(const RunResult& result) {
  return result.accuracy.sequence;
}
double final_loss(const RunResult& result) {
  return result.loss;
}
// Over the whole training: what it cost to get there, and far less noisy than the last step.
double mean_loss(const RunResult& result) {
  return mean(result.losses.y);
}

// An effect below one answer in twenty is none to speak of.
constexpr double kNegligible = 0.05;

struct Variant {
  const char* name;
  void (*change)(TrainOptions&);
  const char* article;  // final loss / per token / per answer of its one seed
};
constexpr Variant kVariants[] = {
    {"full", [](TrainOptions&) {}, "0.0002 / 1.000 / 1.000"},
    {"no scaling", [](TrainOptions& o) { o.model.scale = false; }, "0.0002 / 1.000 / 1.000"},
    {"no position", [](TrainOptions& o) { o.model.position = Position::none; }, "0.7342 / 0.656 / 0.204"},
    {"post-norm", [](TrainOptions& o) { o.model.norm_placement = NormPlacement::post; }, "0.0002 / 1.000 / 1.000"},
    {"pre-norm, rate 1e-2", [](TrainOptions& o) { o.adam.learning_rate = 1e-2; }, "0.0000 / 1.000 / 1.000"},
    {"post-norm, rate 1e-2",
     [](TrainOptions& o) {
       o.adam.learning_rate = 1e-2;
       o.model.norm_placement = NormPlacement::post;
     },
     "0.0000 / 1.000 / 1.000"},
};

template <class Results>
auto part(const Results& results, std::size_t i, Index seeds) {
  return std::span(results).subspan(i * static_cast<std::size_t>(seeds), static_cast<std::size_t>(seeds));
}

void measure_variants(Report& report, const Lab& lab) {
  const Index seeds = lab.full() ? 20 : 3, steps = lab.full() ? 1500 : 400;
  std::vector<TrainOptions> runs;
  for (const Variant& variant : kVariants) {
    TrainOptions options;
    options.steps = steps;
    variant.change(options);
    const auto more = with_seeds(lab, options, seeds);
    runs.insert(runs.end(), more.begin(), more.end());
  }
  const auto results = train_all(lab, runs, {0, 0.5}, "one piece removed at a time");
  Table table{fmt::format("copy, L = 6, {} seeds × {} steps: mean [95 % interval]", seeds, steps),
              {"variant", "final loss", "per token", "per answer", "worst", "all right", "article, one seed × 1500"},
              {}};
  CurveFigure figure{"one piece removed: training loss, mean over seeds", "step", "nats a token", false, true, {}};
  const auto full = collect(part(results, 0, seeds), answers);
  for (std::size_t i = 0; i < std::size(kVariants); ++i) {
    const auto mine = part(results, i, seeds);
    const std::string name = kVariants[i].name;
    const auto sequence = collect(mine, answers);
    table.rows.push_back({name, mean_text(collect(mine, final_loss), 4),
                          mean_text(collect(mine, [](const RunResult& r) { return r.accuracy.token; })),
                          mean_text(sequence), fmt::format("{:.3f}", smallest(sequence)),
                          fmt::format("{} of {}", std::ranges::count(sequence, 1.0), seeds), kVariants[i].article});
    figure.curves.push_back(mean_curve(name, mine));
    if (i == 0) continue;
    const double lost = mean(full) - mean(sequence);
    const Interval interval = difference_interval(full, sequence);
    if (name == "no position") {
      report.claims.push_back(
          claim_positive({"no position: whole answers lost", "article, §three ablations"}, lost, interval, ""));
    } else {
      report.claims.push_back(claim_negligible(
          {name + " on two blocks of head width 8: no answers lost (the article's null, from one seed)",
           "article, §three ablations", false},
          kNegligible, lost, interval));
    }
  }
  report.tables.push_back(std::move(table));
  report.curves.push_back(std::move(figure));
}

// Pre- against post-norm by depth: the regime that the article names and does not reach.
void measure_depth(Report& report, const Lab& lab) {
  const std::vector<Index> depths = lab.full() ? std::vector<Index>{2, 4, 8, 12, 24} : std::vector<Index>{2, 12};
  const Index seeds = lab.full() ? 8 : 3, steps = lab.full() ? 600 : 100;
  std::vector<TrainOptions> runs;
  for (const Index depth : depths) {
    for (const NormPlacement placement : {NormPlacement::pre, NormPlacement::post}) {
      TrainOptions options;
      options.steps = steps;
      options.model.layers = depth;
      options.model.norm_placement = placement;
      const auto more = with_seeds(lab, options, seeds);
      runs.insert(runs.end(), more.begin(), more.end());
    }
  }
  const auto results = train_all(lab, runs, {0.5, 1}, "pre- against post-norm by depth");
  Table table{fmt::format("copy, L = 6, rate 3e-3 without warm-up, {} seeds × {} steps: loss over the whole training",
                          seeds, steps),
              {"blocks", "pre-norm", "post-norm", "post − pre, 95 % interval"},
              {}};
  CurveFigure figure{"by depth: training loss, mean over seeds", "step", "nats a token", false, true, {}};
  for (std::size_t i = 0; i < depths.size(); ++i) {
    figure.curves.push_back(mean_curve(fmt::format("{} blocks, pre-norm", depths[i]), part(results, 2 * i, seeds)));
    figure.curves.push_back(
        mean_curve(fmt::format("{} blocks, post-norm", depths[i]), part(results, 2 * i + 1, seeds)));
    const auto pre = collect(part(results, 2 * i, seeds), mean_loss),
               post = collect(part(results, 2 * i + 1, seeds), mean_loss);
    const Interval interval = difference_interval(post, pre);
    table.rows.push_back({fmt::format("{}", depths[i]), mean_text(pre), mean_text(post),
                          fmt::format("{:.3f} to {:.3f}", interval.low, interval.high)});
    report.claims.push_back(
        claim_positive({fmt::format("{} blocks: post-norm learns more slowly than pre-norm{}; extra loss", depths[i],
                                    i == 0 ? " (the article's null is one of accuracy at the end)" : ""),
                        "arXiv:2002.04745, cited by the article", false},
                       mean(post) - mean(pre), interval, " nats"));
  }
  report.tables.push_back(std::move(table));
  report.curves.push_back(std::move(figure));
}

}  // namespace

void run_ablations(Report& report, const Lab& lab) {
  measure_variants(report, lab);
  measure_depth(report, lab);
  report.notes.emplace_back("Where the division by √D is felt is measured by `scaling`, by head width.");
  if (!lab.full())
    report.notes.emplace_back(
        "Quick: fewer seeds, steps and depths; --full takes 20 seeds × 1500 steps and 2 to 24 blocks.");
}

}  // namespace heedful
