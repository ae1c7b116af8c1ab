// Random cases for sweeps: shapes, options and magnitudes of all kinds, small enough to simulate many.
#ifndef HEEDFUL_INSPECTION_DIAGNOSE_RANDOM_CASE_H_
#define HEEDFUL_INSPECTION_DIAGNOSE_RANDOM_CASE_H_

#include "heedful/core/random.h"
#include "heedful/inspection/diagnose_probes.h"

namespace heedful {

// Uses some of the features, each about half of the time. Inputs are exact in the type. No row is empty unless
// empty_rows allows it.
AttentionCase random_case(Random& random, const ProbeOptions& options);

}  // namespace heedful

#endif  // HEEDFUL_INSPECTION_DIAGNOSE_RANDOM_CASE_H_
