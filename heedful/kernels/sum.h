// Sums with a fixed order: term i goes to lane i mod 16, every lane adds in ascending i, and the lanes meet in a
// fixed tree, so the result depends on the terms and their number alone and a vector unit of any width may do the
// work. The error is at most (n/16 + 5) roundings of Σ|term|.
#ifndef HEEDFUL_KERNELS_SUM_H_
#define HEEDFUL_KERNELS_SUM_H_

#include "heedful/core/view.h"

namespace heedful::internal {

inline constexpr Index kSumLanes = 16;

template <class T>
T sum_of_lanes(T (&lanes)[kSumLanes]) {
  for (Index half = kSumLanes / 2; half > 0; half /= 2) {
    for (Index lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

// Σ_{i<n} term(i), in the type of the terms.
template <class Term>
auto sum(Index n, Term term) {
  using T = decltype(term(Index{0}));
  T lanes[kSumLanes] = {};
  Index i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
    for (Index lane = 0; lane < kSumLanes; ++lane) lanes[lane] += term(i + lane);
  }
  for (Index lane = 0; i + lane < n; ++lane) lanes[lane] += term(i + lane);
  return sum_of_lanes(lanes);
}

}  // namespace heedful::internal

#endif  // HEEDFUL_KERNELS_SUM_H_
