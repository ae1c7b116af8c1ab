// The nine traps of the article as exercises: one is hidden in an implementation, its symptoms are shown, the reader
// says which it is. Reads answers from a stream, so that it can be scripted; the same seed gives the same exercises.
#ifndef HEEDFUL_INSPECTION_DIAGNOSE_TUTORIAL_H_
#define HEEDFUL_INSPECTION_DIAGNOSE_TUTORIAL_H_

#include <cstdint>
#include <istream>
#include <ostream>

namespace heedful {

struct TutorialScore {
  int asked = 0, right = 0;
};

// Answers are a number 1 … 9, "h" for a hint, "s" to be told, "q" or the end of the stream to stop.
TutorialScore run_tutorial(std::istream& answers, std::ostream& page, std::uint64_t seed);

}  // namespace heedful

#endif  // HEEDFUL_INSPECTION_DIAGNOSE_TUTORIAL_H_
