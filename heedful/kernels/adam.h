// One step of Adam (Kingma & Ba, arXiv:1412.6980), or AdamW (Loshchilov & Hutter, arXiv:1711.05101) when the weight
// decay λ is above 0.                                                                every view [P], t = step ≥ 1
//
//     p ← p − η·λ·p                                       only when λ > 0
//     m ← β₁·m + (1 − β₁)·g
//     v ← β₂·v + (1 − β₂)·g²
//     p ← p − η·(m/(1 − β₁ᵗ)) / (√(v/(1 − β₂ᵗ)) + ε)      ε outside the root
//
// The arithmetic runs in double for both types and is rounded once for each of m, v and p; with m, v in double its
// order of operations is that of the formulas as NumPy would evaluate them. Throws Error for shapes that differ, a
// step below 1, a rate, ε or decay that is negative or not finite, and β outside [0, 1).
#ifndef HEEDFUL_KERNELS_ADAM_H_
#define HEEDFUL_KERNELS_ADAM_H_

#include "heedful/core/context.h"
#include "heedful/core/view.h"

namespace heedful {

struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
};

// The running means of the gradient and of its square, both 0 before the first step.
template <class T>
struct AdamMoments {
  View<T, 1> first;
  View<T, 1> second;
};

template <class T>
void adam_step(const Context& context, View<T, 1> parameters, const AdamMoments<std::type_identity_t<T>>& moments,
               In<T, 1> gradient, Index step, const AdamOptions& options);

}  // namespace heedful

#endif  // HEEDFUL_KERNELS_ADAM_H_
