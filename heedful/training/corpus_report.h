// What is known of a corpus before a decoder is scored on it: how much its two parts share, and what models score that
// only count. A decoder worth its name beats the five-gram model.
#ifndef HEEDFUL_TRAINING_CORPUS_REPORT_H_
#define HEEDFUL_TRAINING_CORPUS_REPORT_H_

#include <string>
#include <vector>

#include "heedful/training/held_out.h"
#include "heedful/training/overlap.h"

namespace heedful {

struct CorpusReport {
  struct Grams {
    Index length = 0;
    Overlap overlap;
  };
  struct Baseline {
    std::string name;  // unigram, bigram, five_gram
    HeldOutScore score;
  };
  std::vector<Grams> grams;  // of kOverlapLengths
  Overlap lines;
  std::vector<Baseline> baselines;

  const HeldOutScore& five_gram() const { return baselines.back().score; }
};

// The baselines are fitted on the training parts (ngram.h).
CorpusReport report_on(const Corpus& corpus);

}  // namespace heedful

#endif  // HEEDFUL_TRAINING_CORPUS_REPORT_H_
