// The strict reference of attention.h: the formula in double, written to be read and believed, never fast. It takes
// the same inputs and options, answers in double whatever type they are stored in, and refuses what the working paths
// carry along:
//     a number that takes part and is not finite (q, k, v, bias, dout), or a score that overflows, throws Error
//     naming its place; what is hidden may hold anything
//
// The backward pass saves nothing and computes its own forward pass:
//     dP(i,j) = dout(i)·v(j)                              dS(i,j) = P(i,j) · (dP(i,j) − Σ_l P(i,l)·dP(i,l))
//     dR(i,j) = dS(i,j) · (1 − tanh²(r(i,j)/softcap))     r the raw score; dR = dS without a softcap
//     dq(i) = scale·Σ_j dR(i,j)·k(j)   dk(j) = scale·Σ_i dR(i,j)·q(i)   dv(j) = Σ_i P(i,j)·dout(i)   dbias += dS
// with the sums over i running over all query heads of the group as well. docs/derivations/attention.md derives it.
#ifndef HEEDFUL_ATTENTION_ATTENTION_REFERENCE_H_
#define HEEDFUL_ATTENTION_ATTENTION_REFERENCE_H_

#include "heedful/attention/attention.h"

namespace heedful {

template <class T>
void attention_reference_forward(const AttentionOutputs<double>& outputs, const AttentionInputs<T>& inputs,
                                 const AttentionOptions<T>& options);

template <class T>
void attention_reference_backward(const AttentionGradients<double>& gradients, In<T, 4> dout,
                                  const AttentionInputs<T>& inputs, const AttentionOptions<T>& options);

}  // namespace heedful

#endif  // HEEDFUL_ATTENTION_ATTENTION_REFERENCE_H_
