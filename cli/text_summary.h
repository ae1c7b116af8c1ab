// What `train` and `eval` say of a run on text: what its two parts share first, then the scores.
#ifndef HEEDFUL_CLI_TEXT_SUMMARY_H_
#define HEEDFUL_CLI_TEXT_SUMMARY_H_

#include <cstdio>
#include <optional>

#include "cli/run_folder.h"
#include "heedful/training/corpus_report.h"
#include "heedful/training/trainer.h"

namespace heedful::cli {

struct TextSummary {
  Index parameters = 0, steps = 0;
  double final_loss = 0;
  HeldOutScore score;  // on the whole held-out part
  std::optional<BestScore> best;
  double seconds = 0;  // of training

  bool beats(const CorpusReport& report) const { return score.fresh.loss() < report.five_gram().fresh.loss(); }
};

template <class T>
TextSummary text_summary_of(const Context& context, const TrainingState<T>& state, const Corpus& corpus,
                            double seconds) {
  return {state.decoder.parameters.size(),          state.step, state.loss,
          score(context, corpus, state.decoder, 0), state.best, seconds};
}

void print_overlap(std::FILE* to, const CorpusReport& report);

// On stdout.
void print_text_summary(const TextSummary& summary, const CorpusReport& report, const RunFolder& folder, bool json);

// The corpus a run learnt from, read again; from `file` where it has moved. Throws Error where it has changed.
Corpus corpus_of(const TrainOptions& options, const std::optional<std::string>& file);

}  // namespace heedful::cli

#endif  // HEEDFUL_CLI_TEXT_SUMMARY_H_
