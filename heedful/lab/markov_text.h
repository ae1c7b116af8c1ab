// A text whose entropy is known, letter by letter: a Markov chain of order 2,
//
//     P(w | u v) ∝ exp(sharpness · z_uvw),   z standard normal, drawn once
//
// over the first letters of the alphabet, without a line break. Whatever reads only what stands before a letter cannot
// predict it better than the chain that wrote it: with q such a reader's probability and p the chain's, Π q/p is a
// martingale of mean 1, so that P(Σ ln q/p ≥ c) ≤ e^−c (Ville). A score that is better by more has seen what it was
// asked for.
#ifndef HEEDFUL_LAB_MARKOV_TEXT_H_
#define HEEDFUL_LAB_MARKOV_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "heedful/core/view.h"

namespace heedful {

struct MarkovText {
  std::string text;
  std::vector<double> nats;  // −ln P(letter | all before it); ln(letters) for the first two
};

// Throws Error unless 2 ≤ letters ≤ 26 and length ≥ 2.
MarkovText write_markov_text(Index letters, Index length, double sharpness, std::uint64_t seed);

}  // namespace heedful

#endif  // HEEDFUL_LAB_MARKOV_TEXT_H_
