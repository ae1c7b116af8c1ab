#include <cmath>

#include "heedful/kernels/matmul.h"
#include "heedful/kernels/softmax.h"
#include "heedful/lab/experiments.h"
#include "heedful/lab/small.h"
#include "heedful/lab/statistics.h"
#include "heedful/lab/training_runs.h"
#include "heedful/report/claim.h"

namespace heedful {
namespace {

constexpr Index kRepeats = 400, T = 64;

struct ScoreStatistics {
  double variance = 0, spread = 0, largest_weight = 0, entropy = 0, sensitivity = 0;
};

// Statistics of scores [N, T] that are `raw` times `factor`.
ScoreStatistics statistics_of(const Lab& lab, const Tensor<double, 2>& raw, double factor) {
  ScoreStatistics result;
  const auto n = static_cast<double>(raw.size()), rows = static_cast<double>(raw.extent(0));
  double mean = 0;
  for (const double s : raw) mean += s / n;
  for (const double s : raw) result.variance += (s - mean) * (s - mean) / n;
  result.spread = std::sqrt(result.variance) * factor;
  Tensor<double, 2> weights(raw.extents());
  for (Index i = 0; i < raw.size(); ++i) weights.data()[i] = raw.data()[i] * factor;
  softmax_forward<double>(lab.context(), weights.view(), weights);
  for (Index row = 0; row < raw.extent(0); ++row) {
    double largest = 0;
    for (Index j = 0; j < T; ++j) {
      const double p = weights(row, j);
      largest = std::max(largest, p);
      result.sensitivity += p * (1 - p) / rows;
      if (p > 0) result.entropy -= p * std::log(p) / rows;
    }
    result.largest_weight += largest / rows;
  }
  return result;
}

Tensor<double, 2> raw_scores(const Lab& lab, Index D) {
  Random random(static_cast<std::uint64_t>(100 + D));
  const auto q = draw_normal<double, 3>(random, {kRepeats, T, D});
  const auto k = draw_normal<double, 3>(random, {kRepeats, T, D});
  Tensor<double, 2> scores({kRepeats * T, T});
  for (Index r = 0; r < kRepeats; ++r) {
    matmul<double>(lab.context(), scores.view().slice(0, r * T, (r + 1) * T), q.view()[r], k.view()[r].transpose());
  }
  return scores;
}

// The article's table: width, divided or not, then what it prints.
struct PrintedRow {
  Index D;
  bool divided;
  const char *variance, *spread, *largest, *entropy, *sensitivity;
};
constexpr PrintedRow kPrinted[] = {
    {8, false, "7.98", "2.825", "0.4240", "2.0727", "0.7203"},
    {8, true, "7.98", "0.999", "0.1063", "3.6936", "0.9596"},
    {64, false, "63.99", "8.000", "0.7913", "0.5835", "0.2908"},
    {64, true, "63.99", "1.000", "0.1072", "3.6861", "0.9610"},
    {512, false, "512.59", "22.641", "0.9303", "0.1760", "0.0998"},
    {512, true, "512.59", "1.001", "0.1075", "3.6848", "0.9611"},
};

void measure_table(Report& report, const Lab& lab) {
  const std::string source = "article, §square root";
  Table table{"25,600 rows of 64 keys, standard normal queries and keys",
              {"D", "divided", "Var(q·k)", "spread", "largest weight", "entropy", "sensitivity"},
              {}};
  Tensor<double, 2> raw;
  double sensitivity_lost = 0;
  for (const PrintedRow& row : kPrinted) {
    lab.progress(0.1, fmt::format("scores at D = {}", row.D));
    if (!row.divided) raw = raw_scores(lab, row.D);
    const double factor = row.divided ? 1 / std::sqrt(static_cast<double>(row.D)) : 1;
    const ScoreStatistics s = statistics_of(lab, raw, factor);
    if (row.D == 512) sensitivity_lost = row.divided ? s.sensitivity / sensitivity_lost : s.sensitivity;
    const std::pair<const char*, double> cells[] = {{row.variance, s.variance},
                                                    {row.spread, s.spread},
                                                    {row.largest, s.largest_weight},
                                                    {row.entropy, s.entropy},
                                                    {row.sensitivity, s.sensitivity}};
    table.rows.push_back({fmt::format("{}", row.D), row.divided ? "yes" : "no"});
    std::string expected, measured;
    for (const auto& [printed, value] : cells) {
      table.rows.back().push_back(print_like(printed, value));
      expected += fmt::format("{}{}", expected.empty() ? "" : " ", printed);
      measured += fmt::format("{}{}", measured.empty() ? "" : " ", print_like(printed, value));
    }
    report.claims.push_back(
        claim_that({fmt::format("D = {}, {}: Var(q·k), spread, largest weight, entropy, sensitivity", row.D,
                                row.divided ? "divided by √D" : "not divided"),
                    source},
                   expected == measured, expected, measured));
  }
  report.tables.push_back(std::move(table));
  report.claims.push_back(claim_printed({"sensitivity lost at D = 512 without the division, as a factor", source},
                                        "9.6", sensitivity_lost));
  const ScoreStatistics equal = statistics_of(lab, Tensor<double, 2>({1, T}), 1);
  report.claims.push_back(claim_printed({"64 equal scores: entropy, ln 64", source}, "4.1589", equal.entropy));
  report.claims.push_back(claim_printed({"… sensitivity, 1 − 1/64", source}, "0.9844", equal.sensitivity));
}

// Where training starts to feel it: the same width cut into fewer and wider heads, so that nothing else changes.
void measure_training(Report& report, const Lab& lab) {
  const Index width = lab.full() ? 128 : 64, seeds = lab.full() ? 8 : 5, steps = lab.full() ? 600 : 300;
  std::vector<Index> head_widths;
  for (Index D = 8; D <= width; D *= 2) {
    if (lab.full() || D == 8 || D == width) head_widths.push_back(D);
  }
  std::vector<TrainOptions> runs;
  for (const Index D : head_widths) {
    for (const bool scale : {true, false}) {
      TrainOptions options;
      options.steps = steps;
      options.model.width = width;
      options.model.feed_forward = 4 * width;
      options.model.heads = options.model.kv_heads = width / D;
      options.model.scale = scale;
      const auto more = with_seeds(lab, options, seeds);
      runs.insert(runs.end(), more.begin(), more.end());
    }
  }
  const auto results = train_all(lab, runs, {0.2, 1}, "copy by head width, divided and not");
  Table table{
      fmt::format("copy, L = 6, width {}, {} seeds × {} steps: mean loss of the training", width, seeds, steps),
      {"head width", "heads", "divided", "not divided", "extra loss, 95 % interval", "right answers, not divided"},
      {}};
  CurveFigure figure{"copy by head width: training loss, mean over seeds", "step", "nats a token", false, true, {}};
  const auto at = [&](std::size_t i) {
    return std::span(results).subspan(i * static_cast<std::size_t>(seeds), static_cast<std::size_t>(seeds));
  };
  const auto cost = [](const RunResult& result) { return mean(result.losses.y); };
  for (std::size_t i = 0; i < head_widths.size(); ++i) {
    const auto divided = collect(at(2 * i), cost), raw = collect(at(2 * i + 1), cost);
    const Interval interval = difference_interval(raw, divided);
    table.rows.push_back({fmt::format("{}", head_widths[i]), fmt::format("{}", width / head_widths[i]),
                          mean_text(divided), mean_text(raw),
                          fmt::format("{:.3f} to {:.3f}", interval.low, interval.high),
                          mean_text(collect(at(2 * i + 1), [](const RunResult& r) { return r.accuracy.sequence; }))});
    figure.curves.push_back(mean_curve(fmt::format("D = {}, divided", head_widths[i]), at(2 * i)));
    figure.curves.push_back(mean_curve(fmt::format("D = {}, not divided", head_widths[i]), at(2 * i + 1)));
    if (head_widths[i] < 64) continue;
    report.claims.push_back(claim_positive(
        {fmt::format("head width {}: training is slower without the division; extra loss", head_widths[i]),
         "article, §three ablations", false},
        mean(raw) - mean(divided), interval, " nats"));
  }
  report.tables.push_back(std::move(table));
  report.curves.push_back(std::move(figure));
  if (!lab.full())
    report.notes.emplace_back(
        "Quick: width 64, head widths 8 and 64, 5 seeds × 300 steps; --full takes width 128, head widths 8 to 128, 8 "
        "seeds × 600 steps.");
}

}  // namespace

void run_scaling(Report& report, const Lab& lab) {
  measure_table(report, lab);
  measure_training(report, lab);
}

}  // namespace heedful
