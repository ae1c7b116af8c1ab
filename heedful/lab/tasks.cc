#include <cmath>

#include "heedful/lab/experiments.h"
#include "heedful/lab/statistics.h"
#include "heedful/lab/training_runs.h"
#include "heedful/report/claim.h"

namespace heedful {
namespace {

struct PrintedMean {
  TaskKind kind;
  Index length;
  double token, sequence;  // the article's, over three seeds
};
constexpr PrintedMean kPrinted[] = {
    {TaskKind::copy, 4, 1.000, 1.000}, {TaskKind::copy, 6, 1.000, 1.000}, {TaskKind::copy, 8, 1.000, 1.000},
    {TaskKind::sort, 4, 0.995, 0.981}, {TaskKind::sort, 6, 0.993, 0.970}, {TaskKind::sort, 8, 0.987, 0.951},
};
constexpr Index kArticleSeeds = 3;

void judge(Report& report, const PrintedMean& printed, std::span<const RunResult> results, Index steps) {
  const std::string task(enum_name(printed.kind, kTaskNames)), source = "article, §experiment";
  const auto token = collect(results, [](const RunResult& r) { return r.accuracy.token; });
  const auto sequence = collect(results, [](const RunResult& r) { return r.accuracy.sequence; });
  report.tables[0].rows.push_back(
      {task, fmt::format("{}", printed.length), fmt::format("{} × {}", results.size(), steps), mean_text(token),
       fmt::format("{:.3f}", smallest(token)), mean_text(sequence), fmt::format("{:.3f}", smallest(sequence)),
       fmt::format("{:.3f} / {:.3f}", printed.token, printed.sequence)});
  const std::string what = fmt::format("{}, L = {}", task, printed.length);
  if (printed.kind == TaskKind::copy) {
    report.claims.push_back(
        claim_at_least({what + ": right answers, the worst seed (1.000 there)", source}, 0.99, smallest(sequence)));
    return;
  }
  report.claims.push_back(
      claim_consistent({what + ": whole answers right, where three more seeds would fall", source, false},
                       printed.sequence, mean(sequence), prediction_interval(sequence, kArticleSeeds)));
}

}  // namespace

void run_tasks(Report& report, const Lab& lab) {
  const Index seeds = lab.full() ? 20 : 3, copy_steps = lab.full() ? 1500 : 500;
  std::vector<TrainOptions> runs;
  for (const PrintedMean& printed : kPrinted) {
    TrainOptions options;
    options.task.kind = printed.kind;
    options.task.length = printed.length;
    if (printed.kind == TaskKind::copy) options.steps = copy_steps;
    const auto more = with_seeds(lab, options, seeds);
    runs.insert(runs.end(), more.begin(), more.end());
  }
  const auto results = train_all(lab, runs, {}, "copy and sort");
  report.tables.push_back(
      {"accuracy by generation, 500 questions: mean [95 % interval] over seeds, and the worst seed",
       {"task", "L", "seeds × steps", "per token", "worst", "per answer", "worst", "article"},
       {}});
  CurveFigure figure{"training loss, mean over seeds", "step", "nats a token", false, true, {}};
  for (std::size_t i = 0; i < std::size(kPrinted); ++i) {
    const auto mine =
        std::span(results).subspan(i * static_cast<std::size_t>(seeds), static_cast<std::size_t>(seeds));
    judge(report, kPrinted[i], mine, runs[i * static_cast<std::size_t>(seeds)].steps);
    figure.curves.push_back(
        mean_curve(fmt::format("{}, L = {}", enum_name(kPrinted[i].kind, kTaskNames), kPrinted[i].length), mine));
  }
  report.curves.push_back(std::move(figure));
  constexpr double kSeen = 1500.0 * 32;
  report.claims.push_back(claim_printed(
      {"of the 20⁶ questions of six symbols, those that 1500 steps of 32 see: %", "article, §experiment"}, "0.075",
      100 * kSeen / std::pow(20.0, 6)));
  if (!lab.full())
    report.notes.push_back(
        fmt::format("Quick: {} seeds, copy for {} steps instead of 1500; --full takes 20 seeds and 1500 steps.",
                    seeds, copy_steps));
}

}  // namespace heedful
