// What `train` and `eval` say of a run.
#ifndef HEEDFUL_CLI_SUMMARY_H_
#define HEEDFUL_CLI_SUMMARY_H_

#include <cstdint>

#include "cli/run_folder.h"
#include "heedful/training/evaluate.h"
#include "heedful/training/trainer.h"

namespace heedful::cli {

inline constexpr Index kSamples = 500;             // the article's test set:
inline constexpr std::uint64_t kSampleSeed = 999;  // 500 questions from seed 999

struct Summary {
  Index parameters = 0, steps = 0;
  double final_loss = 0;
  Accuracy accuracy;
  double seconds = 0;  // of training
};

template <class T>
Summary summary_of(const TrainingState<T>& state, const Accuracy& accuracy, double seconds) {
  return {state.decoder.parameters.size(), state.step, state.loss, accuracy, seconds};
}

void print_summary(const Summary& summary, const RunFolder& folder, bool json);

}  // namespace heedful::cli

#endif  // HEEDFUL_CLI_SUMMARY_H_
