// Activations, element by element, and gated units.                                  every view [N, F]
//
//     relu       max(x, 0), derivative 0 at 0
//     gelu       x·Φ(x) = x/2·(1 + erf(x/√2))                                (Hendrycks & Gimpel, arXiv:1606.08415)
//     gelu_tanh  x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³)))                    (the same paper's approximation)
//     silu       x/(1 + exp(−x))
//
//     gated      y = act(gate)·up                                            (Shazeer, arXiv:2002.05202)
//                dgate = dy·up·act′(gate),  dup = dy·act(gate)
//
// The backward passes take the input x, not the output. Outputs may be their inputs, element on element. Throws Error
// when the shapes differ.
#ifndef HEEDFUL_KERNELS_ACTIVATION_H_
#define HEEDFUL_KERNELS_ACTIVATION_H_

#include "heedful/core/context.h"
#include "heedful/core/view.h"

namespace heedful {

enum class Activation { relu, gelu, gelu_tanh, silu };

template <class T>
void activation_forward(const Context& context, View<T, 2> y, In<T, 2> x, Activation kind);
template <class T>
void activation_backward(const Context& context, View<T, 2> dx, In<T, 2> dy, In<T, 2> x, Activation kind);

template <class T>
struct GatedInput {
  View<T, 2> gate;
  View<T, 2> up;
};

template <class T>
void gated_forward(const Context& context, View<T, 2> y, const GatedInput<const std::type_identity_t<T>>& x,
                   Activation kind);
template <class T>
void gated_backward(const Context& context, const GatedInput<T>& dx, In<T, 2> dy,
                    const GatedInput<const std::type_identity_t<T>>& x, Activation kind);

}  // namespace heedful

#endif  // HEEDFUL_KERNELS_ACTIVATION_H_
