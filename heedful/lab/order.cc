#include <cmath>
#include <set>

#include "heedful/inference/generate.h"
#include "heedful/lab/altered_forward.h"
#include "heedful/lab/experiments.h"
#include "heedful/lab/position_probe.h"
#include "heedful/lab/statistics.h"
#include "heedful/lab/training_runs.h"
#include "heedful/report/claim.h"

namespace heedful {
namespace {

struct ByRepetition {
  double distinct = 0, repeated = 0;  // share of whole answers right
  Index distinct_questions = 0;
};

ByRepetition accuracy_by_repetition(const Decoder<float>& decoder, const Task& task) {
  Random random(kQuestionSeed);
  const Tensor<Index, 2> questions = draw_questions(task, kQuestions, random);
  const Tensor<Index, 2> prompts = prompts_of(task, questions);
  GenerateOptions options;
  options.tokens = task.length;
  const auto generation = generate<float>(Context(1), decoder, prompts, options);
  ByRepetition result;
  for (Index b = 0; b < kQuestions; ++b) {
    std::set<Index> symbols;
    bool right = true;
    for (Index t = 0; t < task.length; ++t) {
      symbols.insert(questions(b, t));
      right = right && generation.tokens(b, t) == questions(b, t);
    }
    const bool distinct = std::ssize(symbols) == task.length;
    result.distinct_questions += distinct;
    (distinct ? result.distinct : result.repeated) += right;
  }
  result.distinct /= static_cast<double>(result.distinct_questions);
  result.repeated /= static_cast<double>(kQuestions - result.distinct_questions);
  return result;
}

void measure_repetition(Report& report, const Lab& lab, std::span<const RunResult> results, const Task& task) {
  const std::string source = "article, §three ablations (one seed: 0.246 against 0.170)";
  std::vector<double> distinct, repeated, differences;
  ByRepetition last;
  lab.progress(0.9, "distinct against repeated symbols");
  for (const RunResult& result : results) {
    last = accuracy_by_repetition(result.decoder, task);
    distinct.push_back(last.distinct);
    repeated.push_back(last.repeated);
    differences.push_back(last.distinct - last.repeated);
  }
  report.tables.push_back(
      {fmt::format("copy without position, {} seeds: whole answers right, mean [95 % interval]", results.size()),
       {"questions", "right", "article, one seed"},
       {{"all symbols distinct", mean_text(distinct), "0.246"},
        {"a symbol repeated", mean_text(repeated), "0.170"},
        {"difference, seed by seed", mean_text(differences), "0.076"}}});
  report.claims.push_back(
      claim_positive({"without position, distinct symbols are copied more often than repeated ones", source, false},
                     mean(differences), mean_interval(differences), ""));
  report.claims.push_back(
      claim_equal({"questions of 500 whose symbols are all distinct (0.448; 0.436 expected of chance)",
                   "article, §three ablations"},
                  224, last.distinct_questions));
  const auto token = collect(results, [](const RunResult& r) { return r.accuracy.token; });
  const auto sequence = collect(results, [](const RunResult& r) { return r.accuracy.sequence; });
  report.claims.push_back(
      claim_consistent({"no position, per token, where one more seed would fall", "article, §three ablations", false},
                       0.656, mean(token), prediction_interval(token, 1)));
  report.claims.push_back(claim_consistent(
      {"no position, whole answers, where one more seed would fall", "article, §three ablations", false}, 0.204,
      mean(sequence), prediction_interval(sequence, 1)));
}

void measure_leak(Report& report, const Lab& lab, std::span<const RunResult> results) {
  const std::string source = "article, §three ablations; arXiv:2203.16634";
  std::vector<double> causal, full;
  for (const RunResult& result : results) {
    causal.push_back(position_probe(lab.context(), result.decoder, ProbeMask::causal));
    full.push_back(position_probe(lab.context(), result.decoder, ProbeMask::full));
  }
  const double untrained_causal =
      position_probe(lab.context(), untrained(results[0].decoder.config), ProbeMask::causal);
  report.tables.push_back(
      {"share of the position's variance that a linear probe reads from the last block's rows (held-out R²)",
       {"model without position", "causal mask", "no mask"},
       {{"trained", mean_text(causal), mean_text(full)},
        {"as initialized", fmt::format("{:.3f}", untrained_causal),
         fmt::format("{:.3f}",
                     position_probe(lab.context(), untrained(results[0].decoder.config), ProbeMask::full))}}});
  report.claims.push_back(claim_positive(
      {"position leaks through the causal mask: held-out R² of a linear probe (the explanation that the "
       "article gives and does not test)",
       source},
      mean(causal), mean_interval(causal), ""));
  // Without a mask the rows are the same numbers in another order: the probe can only fit noise, so R² is 0 or less.
  report.claims.push_back(claim_at_most({"… and without the mask nothing of it is left", source}, 0.02, mean(full)));
}

}  // namespace

void run_order(Report& report, const Lab& lab) {
  TrainOptions options;
  options.model.position = Position::none;
  const Index seeds = lab.full() ? 20 : 3;
  const auto results = train_all(lab, with_seeds(lab, options, seeds), {0, 0.9}, "copy without position");
  measure_repetition(report, lab, results, options.task);
  measure_leak(report, lab, results);
  if (!lab.full()) report.notes.push_back(fmt::format("Quick: {} seeds; --full takes 20.", seeds));
}

}  // namespace heedful
