// Layer normalisation (Ba et al., arXiv:1607.06450) and root-mean-square normalisation (Zhang & Sennrich,
// arXiv:1910.07467) of every row.                                                   x, y [N, C], gain, bias [C]
//
//     layer:  μ = mean(x),  r = 1/√(mean((x − μ)²) + ε),  x̂ = (x − μ)·r,  y = gain·x̂ + bias
//     rms:    r = 1/√(mean(x²) + ε),                      x̂ = x·r,        y = gain·x̂
//
// The variance is that of a population (divided by C) and ε stands inside the root. With g = gain·dy and M = mean
// over the row:
//
//     layer:  dx = r·(g − M(g) − x̂·M(g·x̂))        dgain += Σ_n dy·x̂        dbias += Σ_n dy
//     rms:    dx = r·(g − x̂·M(g·x̂))               dgain += Σ_n dy·x̂
//
// The backward passes need x̂ and r, never x. An empty gain is 1 and an empty bias is 0; an empty dgain or dbias is
// not wanted. Sums along a row follow sum.h, sums over rows run over ascending n from 0 and are then added. y may be
// x, and dx may be dy. C = 0 and mismatched shapes throw Error.
#ifndef HEEDFUL_KERNELS_NORMALIZATION_H_
#define HEEDFUL_KERNELS_NORMALIZATION_H_

#include "heedful/core/context.h"
#include "heedful/core/view.h"

namespace heedful {

// What the forward pass leaves for the backward pass; T is const when it is read. Both views may be empty in a
// forward pass that no backward pass follows.
template <class T>
struct NormalizationRecord {
  View<T, 2> normalized;         // [N, C], x̂
  View<T, 1> inverse_deviation;  // [N], r
};

template <class T>
struct NormalizationParameters {
  View<const T, 1> gain;  // [C]
  View<const T, 1> bias;  // [C]; always empty for rms
};

template <class T>
struct NormalizationGradients {
  View<T, 2> dx;     // [N, C], assigned
  View<T, 1> dgain;  // [C], added to
  View<T, 1> dbias;  // [C], added to; always empty for rms
};

template <class T>
void layer_norm_forward(const Context& context, View<T, 2> y,
                        const NormalizationRecord<std::type_identity_t<T>>& record, In<T, 2> x,
                        const NormalizationParameters<std::type_identity_t<T>>& parameters, double epsilon);
template <class T>
void layer_norm_backward(const Context& context, const NormalizationGradients<T>& gradients, In<T, 2> dy,
                         const NormalizationRecord<const std::type_identity_t<T>>& record, In<T, 1> gain);

template <class T>
void rms_norm_forward(const Context& context, View<T, 2> y,
                      const NormalizationRecord<std::type_identity_t<T>>& record, In<T, 2> x, In<T, 1> gain,
                      double epsilon);
template <class T>
void rms_norm_backward(const Context& context, const NormalizationGradients<T>& gradients, In<T, 2> dy,
                       const NormalizationRecord<const std::type_identity_t<T>>& record, In<T, 1> gain);

}  // namespace heedful

#endif  // HEEDFUL_KERNELS_NORMALIZATION_H_
