// The ninth trap's remedy: not what a head weighs, but what happens to the answer when the head cannot look there.
#ifndef HEEDFUL_LAB_REMOVAL_H_
#define HEEDFUL_LAB_REMOVAL_H_

#include <vector>

#include "heedful/lab/lab.h"

namespace heedful {

// The article's sequence: 17 3 0 12 7 9, the separator, 17 3 0 12 7.
Tensor<Index, 2> map_sequence();          // [1, 12]
inline constexpr Index kAnswerBegin = 6;  // positions 6 … 11 emit the answer
std::vector<std::string> map_labels();    // "17", …, "SEP", …

// effects(l, h, i, j): by how many nats the log-probability of the whole right answer falls when query i of head h in
// layer l cannot see key j (its remaining weights grow to 1; a query left with no key gets 0). 0 where j > i.
Tensor<double, 4> removal_effects(const Context& context, const Decoder<double>& decoder);

}  // namespace heedful

#endif  // HEEDFUL_LAB_REMOVAL_H_
