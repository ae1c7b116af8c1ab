// Rotary position embedding: pair c of a query or key at position p turns by the angle p·θ(c),
//     θ(c) = base^(−2c / R)                       c = 0 … R/2 − 1; R ≤ D numbers of a head turn, the rest stays
//     y(a) = x(a)·cos − x(b)·sin
//     y(b) = x(a)·sin + x(b)·cos                  (a, b) = the places of pair c, which the layout names
// so that q(m)·k(n) depends on m − n alone. The backward pass turns back: dx is dy rotated by −p·θ(c).
//
// Layouts are not interchangeable, and weights trained with one give nonsense with the other without any error; hence
// no function here has a default layout.
//
// Source: Su et al., arXiv:2104.09864, §3.2 (interleaved); half-split as in GPT-NeoX and Llama's published weights.
#ifndef HEEDFUL_ATTENTION_ROTARY_H_
#define HEEDFUL_ATTENTION_ROTARY_H_

#include "heedful/core/tensor.h"
#include "heedful/core/view.h"

namespace heedful {

enum class RotaryLayout {
  interleaved,  // pair c is (2c, 2c + 1)
  half_split,   // pair c is (c, c + R/2)
};

template <class T>
struct RotaryAngles {
  View<const T, 2> cos;  // [positions, R/2]
  View<const T, 2> sin;  // [positions, R/2]
};

// The cosines and sines of positions 0 … positions − 1, computed in double and rounded once to T.
template <class T>
class RotaryTable {
 public:
  RotaryTable(Index positions, Index rotary_width, double base);  // Error unless R is even and ≥ 2, base > 0

  operator RotaryAngles<T>() const { return {cos_, sin_}; }  // NOLINT(google-explicit-constructor)

 private:
  Tensor<T, 2> cos_, sin_;
};

// y, x: [B, heads, T, D]; positions: [B|1, T], rows of `angles`. y may be x itself. Throws Error on shapes that
// contradict one another and on a position outside the table.
template <class T>
void rotary_forward(View<T, 4> y, In<T, 4> x, In<Index, 2> positions,
                    const std::type_identity_t<RotaryAngles<T>>& angles, RotaryLayout layout);
template <class T>
void rotary_backward(View<T, 4> dx, In<T, 4> dy, In<Index, 2> positions,
                     const std::type_identity_t<RotaryAngles<T>>& angles, RotaryLayout layout);

}  // namespace heedful

#endif  // HEEDFUL_ATTENTION_ROTARY_H_
