// Weighted cross-entropy on logits, with its gradient in the same pass.
//
//     loss = Σ_n w[n]·(log Σ_v exp(logits[n, v]) − logits[n, target[n]]) / Σ_n w[n]
//     dlogits[n, v] = (softmax(logits[n])[v] − [v = target[n]])·w[n] / Σ_n w[n]     logits [N, V], w, target [N]
//
// The log-sum-exp subtracts the row's maximum. A row of weight 0 has loss 0 and gradient 0, and neither its logits
// nor its target are read: padding may hold anything. Empty weights are all 1. The loss and Σw are summed in double
// over ascending n. Throws Error for shapes that do not fit, a weight that is negative or not finite, Σw = 0, and a
// target outside [0, V) in a row that counts.
#ifndef HEEDFUL_KERNELS_CROSS_ENTROPY_H_
#define HEEDFUL_KERNELS_CROSS_ENTROPY_H_

#include <span>

#include "heedful/core/context.h"
#include "heedful/core/view.h"

namespace heedful {

// What is written besides the loss; an empty view is not wanted.
template <class T>
struct CrossEntropyOutput {
  View<T, 2> dlogits;      // [N, V]; may be the logits themselves
  View<double, 1> losses;  // [N], −log softmax(logits[n])[target[n]], unweighted
};

template <class T>
double cross_entropy(const Context& context, const CrossEntropyOutput<T>& output, In<T, 2> logits,
                     std::span<const Index> targets, In<T, 1> weights);

}  // namespace heedful

#endif  // HEEDFUL_KERNELS_CROSS_ENTROPY_H_
