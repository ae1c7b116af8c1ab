// The smallest case on which something that answers cases is clearly wrong.
#ifndef HEEDFUL_INSPECTION_DIAGNOSE_COUNTEREXAMPLE_H_
#define HEEDFUL_INSPECTION_DIAGNOSE_COUNTEREXAMPLE_H_

#include <functional>
#include <optional>
#include <span>

#include "heedful/inspection/diagnose.h"

namespace heedful {

using Answers = std::function<AttentionAnswer(const AttentionCase&)>;

// Shrinks the first of the observed cases whose answer is kMargin standard deviations wrong; none where none is.
std::optional<Counterexample> find_counterexample(const Answers& answers, std::span<const Observation> observations);

}  // namespace heedful

#endif  // HEEDFUL_INSPECTION_DIAGNOSE_COUNTEREXAMPLE_H_
