// Positions that are fixed rather than learned. (Rotary ones turn queries and keys: rotary.h.)
#ifndef HEEDFUL_ATTENTION_POSITION_H_
#define HEEDFUL_ATTENTION_POSITION_H_

#include "heedful/core/tensor.h"
#include "heedful/core/view.h"

namespace heedful {

//     table(p, 2i)     = sin(p / 10000^(2i/C))
//     table(p, 2i + 1) = cos(p / 10000^(2i/C))          table: [positions, C]
// computed in double and rounded once to T. Source: Vaswani et al., arXiv:1706.03762, §3.5.
template <class T>
void sinusoidal_positions(View<T, 2> table);

// One slope a head: 2^(−8/H), 2^(−16/H), …, 2^(−8) where H is a power of two; otherwise those of the largest power
// of two H' < H, then every other one of 2H' from the first. Error unless heads ≥ 1.
// Source: Press et al., arXiv:2108.12409, §3; the second rule is that of the authors' published code.
Tensor<double, 1> alibi_slopes(Index heads);

}  // namespace heedful

#endif  // HEEDFUL_ATTENTION_POSITION_H_
