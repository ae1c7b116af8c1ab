// Attention rows other than the learned one with the same head output, so that nothing after the head can tell: the
// adversarial distributions of Jain & Wallace (arXiv:1902.10186, §4.2), in their strictest form.
//
//     maximise ½·Σ_j |p'(j) − p(j)|   over   p' ≥ 0,  Σ p' = 1,  Σ_j p'(j)·v(j) = Σ_j p(j)·v(j)
//
// A convex function on a polytope is largest at a vertex. The search walks from p along directions that keep the
// constraints, dropping each key whose weight reaches 0, until no direction is left; it starts many times from its
// own seed and keeps the furthest vertex.
#ifndef HEEDFUL_LAB_COUNTERFACTUAL_H_
#define HEEDFUL_LAB_COUNTERFACTUAL_H_

#include <vector>

#include "heedful/decoder/decoder.h"

namespace heedful {

// The furthest row found, p' [n], for weights p [n] and values v [n, E]; p itself where it is alone.
std::vector<double> furthest_row(View<const double, 1> p, View<const double, 2> v, Random& random);

struct Alternative {
  double distance = 0;       // total variation, the largest over the rows looked at
  double output_change = 0;  // largest |Σ_j (p'(j) − p(j))·v(j)|, which only rounding makes other than 0
};

// One a head, layer by layer, over rows [begin, T) of one sequence [1, T].
std::vector<Alternative> furthest_alternatives(const Context& context, const Decoder<double>& decoder,
                                               View<const Index, 2> tokens, Index begin);

}  // namespace heedful

#endif  // HEEDFUL_LAB_COUNTERFACTUAL_H_
