// Whether gradients belong to a forward pass, right or wrong: for random directions (u, v, w) of (q, k, v)
//
//     ⟨dq, u⟩ + ⟨dk, v⟩ + ⟨dv, w⟩ = d/dt ⟨dout, out(q + t·u, k + t·v, v + t·w)⟩ at t = 0
//
// so that a mistake in the forward pass, carried through backward faithfully, is not blamed on the backward pass too.
// The derivative is a central difference of fourth order in double: with t = 10⁻³ its error is about 10⁻¹¹.
#ifndef HEEDFUL_INSPECTION_DIAGNOSE_CONSISTENCY_H_
#define HEEDFUL_INSPECTION_DIAGNOSE_CONSISTENCY_H_

#include "heedful/inspection/diagnose_hypotheses.h"

namespace heedful::diagnosis {

// The largest disagreement over all observations with gradients, in standard deviations. Leaves out those whose output
// is not finite.
double gradient_disagreement(const Evidence& evidence, const Hypothesis& forward);

}  // namespace heedful::diagnosis

#endif  // HEEDFUL_INSPECTION_DIAGNOSE_CONSISTENCY_H_
