// The smallest case on which an implementation still goes wrong, by greedy deletion: sequences, heads, queries, keys
// and channels in halves, then one by one; then options; then numbers rounded to small integers.
//
// Source: Zeller & Hildebrandt, Simplifying and Isolating Failure-Inducing Input, IEEE TSE 28(2), 2002.
#ifndef HEEDFUL_INSPECTION_DIAGNOSE_SHRINK_H_
#define HEEDFUL_INSPECTION_DIAGNOSE_SHRINK_H_

#include <functional>

#include "heedful/inspection/diagnose_case.h"

namespace heedful {

enum class Axis { batch, group, head_of_group, query, key, query_width, value_width };

// The case without the indices begin … end − 1 of an axis; some of it must be left.
AttentionCase without(const AttentionCase& given, Axis axis, Index begin, Index end);
Index extent(const AttentionCase& given, Axis axis);

// Calls still_wrong at most `budget` times; it must hold for `given`, and holds for the result. Where it throws Error
// the smaller case counts as not wrong.
AttentionCase shrink(const AttentionCase& given, const std::function<bool(const AttentionCase&)>& still_wrong,
                     int budget = 2000);

}  // namespace heedful

#endif  // HEEDFUL_INSPECTION_DIAGNOSE_SHRINK_H_
