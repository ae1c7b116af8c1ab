#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>

#include "heedful/lab/experiments.h"
#include "heedful/lab/markov_text.h"
#include "heedful/report/claim.h"
#include "heedful/training/corpus_report.h"
#include "heedful/training/trainer.h"

namespace heedful {
namespace {

struct Learned {
  HeldOutScore score;            // of the whole held-out part, at the end
  Curve training, held_out;      // loss by step; the held-out one on a sample of windows
  std::vector<Curve> baselines;  // level lines
};

Curve level(std::string name, double loss, Index steps) {
  return {std::move(name), {1, static_cast<double>(steps)}, {loss, loss}};
}

Learned learn(const Lab& lab, const Corpus& corpus, const TrainOptions& options, const std::string& what,
              double begin, double end) {
  constexpr Index kStride = 10;  // steps that one point of the training curve averages
  Learned result;
  result.training.name = "decoder, training";
  result.held_out.name = "decoder, held out";
  Trainer<float> trainer(new_training<float>(options), lab.context(), &corpus);
  double sum = 0;
  while (trainer.state().step < options.steps) {
    sum += trainer.step();
    const Index step = trainer.state().step;
    lab.progress(begin + (end - begin) * static_cast<double>(step) / static_cast<double>(options.steps), what);
    if (step % kStride == 0) {
      result.training.x.push_back(static_cast<double>(step));
      result.training.y.push_back(sum / kStride);
      sum = 0;
    }
    if (step % options.corpus->evaluate_every == 0) {
      result.held_out.x.push_back(static_cast<double>(step));
      result.held_out.y.push_back(trainer.evaluate().all.loss());
    }
  }
  result.score = score<float>(lab.context(), corpus, trainer.state().decoder, 0);
  return result;
}

std::vector<std::string> score_row(const std::string& name, const HeldOutScore& score) {
  return {name, fmt::format("{:.4f}", score.fresh.loss()), fmt::format("{:.4f}", score.fresh.bits_per_byte()),
          fmt::format("{:.4f}", score.all.loss())};
}

void add_scores(Report& report, const std::string& what, const Corpus& corpus, const CorpusReport& known,
                const TrainOptions& options, const Learned& learned) {
  Table table{fmt::format("{}: held-out part, {} tokens of {} kinds, after {} steps of {} windows of {}", what,
                          learned.score.all.tokens, corpus.tokenizer.vocabulary(), options.steps, options.batch,
                          options.model.context),
              {"model", "nats a token", "bits a byte", "nats, known lines too"},
              {}};
  CurveFigure figure{
      what + ": loss by step", "step", "nats a token", false, false, {learned.training, learned.held_out}};
  for (const auto& [name, score] : known.baselines) {
    table.rows.push_back(score_row(name, score));
    if (name != "unigram") figure.curves.push_back(level(name, score.all.loss(), options.steps));
  }
  table.rows.push_back(score_row("decoder", learned.score));
  for (const Curve& curve : learned.baselines) figure.curves.push_back(curve);
  report.tables.push_back(std::move(table));
  report.curves.push_back(std::move(figure));
}

void claim_below(Report& report, const Statement& statement, const HeldOutScore& decoder, const HeldOutScore& other) {
  report.claims.push_back(claim_that(statement, decoder.fresh.loss() < other.fresh.loss(),
                                     fmt::format("below {:.4f} nats a token", other.fresh.loss()),
                                     fmt::format("{:.4f}", decoder.fresh.loss())));
}

// A text that the lab writes itself and whose every letter's probability it knows.
void measure_known_source(Report& report, const Lab& lab, double end) {
  const std::string source = "G14, §what a transformer adds";
  const Index steps = lab.full() ? 2000 : 1000;
  const MarkovText written = write_markov_text(12, 200'000, 1.5, 41);
  CorpusOptions cut;
  cut.file = "text of known entropy";
  cut.evaluate_every = steps / 20;
  cut.evaluate_windows = 64;
  const Corpus corpus = corpus_from(cut, written.text);
  TrainOptions options = text_defaults(corpus.options);
  options.seed = lab.seed();
  options.model.context = 32;
  options.model.width = 48;
  options.model.layers = 2;
  options.model.feed_forward = 192;
  options.batch = 16;
  options.steps = options.schedule.decay_steps = steps;
  options.adam.learning_rate = 3e-3;
  const CorpusReport known = report_on(corpus);
  Learned learned = learn(lab, corpus, options, "text of known entropy", 0, end);

  const auto from = written.nats.begin() + corpus.held_out_begin + 1;  // the first one has nothing before it
  const double source_nats = std::accumulate(from, written.nats.begin() + corpus.held_out_end, 0.0);
  const double source_loss = source_nats / static_cast<double>(learned.score.all.tokens);
  learned.baselines.push_back(level("the source itself", source_loss, steps));
  add_scores(report, "text of a Markov chain", corpus, known, options, learned);
  report.tables.back().rows.push_back(
      {"the source itself", fmt::format("{:.4f}", source_loss), "", fmt::format("{:.4f}", source_loss)});

  // P(better by 14 nats in all) ≤ e^−14 < 1e-6 for whatever reads the past alone (markov_text.h).
  report.claims.push_back(claim_at_most(
      {"without leakage nobody predicts a source better than it knows itself: nats by which the decoder "
       "is better over the whole held-out part",
       source},
      14, source_nats - learned.score.all.nats));
  report.claims.push_back(
      claim_at_most({"… nor does the 5-gram model", source}, 14, source_nats - known.five_gram().all.nats));
  claim_below(report, {"a chain of order 2: the decoder beats the model that sees one letter back", source},
              learned.score, known.baselines[1].score);
  claim_below(report, {"… and the 5-gram model, fitted on the same training part", source, false}, learned.score,
              known.five_gram());
}

// nanoGPT's published character set-up for a CPU is judged on the file that it was published with.
constexpr Index kTinyShakespeareBytes = 1115394;
constexpr std::uint64_t kTinyShakespeareHash = 0x4016C93C3BE74C18;

void measure_corpus(Report& report, const Lab& lab, double begin) {
  const std::string source = "G14, §what a transformer adds";
  const Index steps = lab.full() ? 2000 : 300;
  CorpusOptions cut;
  cut.file = lab.corpus();
  cut.evaluate_every = steps / 20;
  cut.evaluate_windows = 128;
  const Corpus corpus = read_corpus(cut);
  TrainOptions options = text_defaults(corpus.options);
  options.seed = lab.seed();
  options.steps = options.schedule.decay_steps = steps;
  options.schedule.warmup = std::min<Index>(options.schedule.warmup, steps / 5);
  const std::string name = std::filesystem::path(lab.corpus()).filename().string();
  const CorpusReport known = report_on(corpus);
  Table overlap{
      name + ": of the held-out part, training holds word for word", {"pieces", "count", "shared", "%"}, {}};
  const auto add_overlap = [&](const std::string& pieces, const Overlap& shared) {
    overlap.rows.push_back({pieces, fmt::format("{}", shared.count), fmt::format("{}", shared.shared),
                            fmt::format("{:.2f}", 100 * shared.share())});
  };
  for (const auto& [length, shared] : known.grams) add_overlap(fmt::format("runs of {} tokens", length), shared);
  add_overlap("whole lines (left out of the score)", known.lines);
  report.tables.push_back(std::move(overlap));

  const Learned learned = learn(lab, corpus, options, name, begin, 1);
  add_scores(report, name, corpus, known, options, learned);
  const bool shakespeare =
      corpus.options.bytes == kTinyShakespeareBytes && corpus.options.hash == kTinyShakespeareHash;
  // A reader's own text may be too short or too strange to be learnt, which is no fault of the program.
  claim_below(report, {name + ": the decoder beats the unigram model", source, shakespeare}, learned.score,
              known.baselines[0].score);
  claim_below(report, {name + ": … the bigram model", source, shakespeare && lab.full()}, learned.score,
              known.baselines[1].score);
  claim_below(report, {name + ": … the 5-gram model", source, false}, learned.score, known.five_gram());
  if (shakespeare && lab.full()) {
    report.claims.push_back(claim_at_most(
        {"tinyshakespeare, 4 layers, 4 heads, width 128, context 64, batch 12, 2000 steps: held-out loss, every line",
         "nanoGPT, README (1.88)"},
        1.88, learned.score.all.loss()));
  }
  if (!lab.full()) {
    report.notes.push_back(fmt::format("Quick: {} steps on {}; --full takes nanoGPT's 2000{}.", steps, name,
                                       shakespeare ? " and is judged by its published loss of 1.88" : ""));
  }
}

}  // namespace

void run_text(Report& report, const Lab& lab) {
  const bool real = !lab.corpus().empty();
  measure_known_source(report, lab, real ? 0.2 : 1);
  if (real) {
    measure_corpus(report, lab, 0.2);
  } else {
    report.notes.emplace_back(
        "No real text was given, so none was learnt: --corpus FILE takes any; `script/kjv-text > kjv.txt` writes the "
        "King James Bible. nanoGPT's figure (1.88) is judged under --full on tinyshakespeare alone.");
  }
  if (!lab.full()) report.notes.emplace_back("Quick: 1000 steps on the text of known entropy; --full takes 2000.");
}

}  // namespace heedful
