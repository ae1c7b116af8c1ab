// How much of the held-out part of a corpus training has seen word for word: a score on text that was learnt by heart
// says nothing, so this is reported before any score.
#ifndef HEEDFUL_TRAINING_OVERLAP_H_
#define HEEDFUL_TRAINING_OVERLAP_H_

#include <vector>

#include "heedful/training/corpus.h"

namespace heedful {

// Of `count` pieces of the held-out part, every occurrence counted, `shared` occur in a training part.
struct Overlap {
  Index count = 0, shared = 0;
  double share() const { return count == 0 ? 0 : static_cast<double>(shared) / static_cast<double>(count); }
};

inline constexpr Index kOverlapLengths[] = {8, 16, 32};

// Runs of `length` ≥ 1 neighbouring tokens. Compared token by token, not by hash alone.
Overlap gram_overlap(const Corpus& corpus, Index length);

// Whole lines that are not empty.
Overlap line_overlap(const Corpus& corpus);

}  // namespace heedful

#endif  // HEEDFUL_TRAINING_OVERLAP_H_
