#include "cli/text_summary.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace heedful::cli {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const TextScore& score) {
  return {{"loss", score.loss()}, {"bits_per_byte", score.bits_per_byte()}, {"tokens", score.tokens}};
}

ordered_json to_json(const TextSummary& summary, const CorpusReport& report, double rate) {
  ordered_json overlap, baselines;
  for (const auto& [length, shared] : report.grams) overlap[fmt::format("{}", length)] = shared.share();
  overlap["lines"] = report.lines.share();
  for (const auto& [name, score] : report.baselines) {
    baselines[name] = to_json(score.fresh);
    baselines[name]["loss_all"] = score.all.loss();
  }
  ordered_json object = {{"overlap", overlap},
                         {"parameters", summary.parameters},
                         {"steps", summary.steps},
                         {"final_loss", summary.final_loss},
                         {"held_out", to_json(summary.score.fresh)},
                         {"held_out_all", to_json(summary.score.all)},
                         {"baselines", baselines},
                         {"beats_five_gram", summary.beats(report)}};
  if (summary.best) object["best"] = {{"step", summary.best->step}, {"loss", summary.best->loss}};
  object["seconds"] = summary.seconds;
  object["steps_per_second"] = rate;
  return object;
}

void print_row(std::string_view name, const HeldOutScore& score) {
  fmt::print("{:<10}  {:>13.4f}  {:>13.4f}  {:>17.4f}\n", name, score.fresh.loss(), score.fresh.bits_per_byte(),
             score.all.loss());
}

}  // namespace

void print_overlap(std::FILE* to, const CorpusReport& report) {
  fmt::print(to, "of the held-out part, training holds: ");
  for (const auto& [length, shared] : report.grams) {
    fmt::print(to, "{:.2f} % of runs of {} tokens, ", 100 * shared.share(), length);
  }
  fmt::print(to, "{:.2f} % of lines ({} of {})\n", 100 * report.lines.share(), report.lines.shared,
             report.lines.count);
}

void print_text_summary(const TextSummary& summary, const CorpusReport& report, const RunFolder& folder, bool json) {
  const double rate = summary.seconds > 0 ? static_cast<double>(summary.steps) / summary.seconds : 0;
  if (json) {
    ordered_json object = to_json(summary, report, rate);
    object["run"] = folder.path().string();
    fmt::print("{}\n", object.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
    return;
  }
  print_overlap(stdout, report);
  fmt::print("parameters           {}\n", summary.parameters);
  fmt::print("steps                {}  ({:.1f} s of training, {:.0f} steps/s)\n", summary.steps, summary.seconds,
             rate);
  fmt::print("final training loss  {:.4f}\n", summary.final_loss);
  if (summary.best) fmt::print("best sampled score   {:.4f} at step {}\n", summary.best->loss, summary.best->step);
  fmt::print("\nheld out    loss a token  bits per byte  loss, known lines too\n");
  for (const auto& [name, score] : report.baselines) print_row(name, score);
  print_row("decoder", summary.score);
  fmt::print("{} of {} held-out tokens count: the others stand in lines that training holds too\n",
             summary.score.fresh.tokens, summary.score.all.tokens);
  if (!summary.beats(report)) fmt::print("THE DECODER DOES NOT BEAT THE FIVE-GRAM MODEL\n");
  fmt::print("run                  {}\n", folder.path().string());
}

Corpus corpus_of(const TrainOptions& options, const std::optional<std::string>& file) {
  CorpusOptions corpus = *options.corpus;
  if (file) corpus.file = *file;
  return read_corpus(corpus);
}

}  // namespace heedful::cli
