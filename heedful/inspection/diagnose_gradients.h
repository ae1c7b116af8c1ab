// The backward pass as a recipe of small steps (GradientRecipe), in double:
//
//     dv = Pᵀ·dout    dP = dout·vᵀ    dS = P ∘ (dP − Σ_j P∘dP)    dq = scale·dS·k    dk = scale·dSᵀ·q
//
// with dS ∘ (1 − tanh²) behind a softcap, the heads of a group added together, and dq, dk turned back by the rotary
// positions, so that they are the gradients of q and k as they were given.
#ifndef HEEDFUL_INSPECTION_DIAGNOSE_GRADIENTS_H_
#define HEEDFUL_INSPECTION_DIAGNOSE_GRADIENTS_H_

#include "heedful/inspection/diagnose_simulation.h"

namespace heedful::diagnosis {

struct GradientWalk {
  explicit GradientWalk(const Walk& finished);

  const Walk& forward;
  Tensor<bool, 4> excluded;                  // [B, H, Tq, Tk] as in the forward walk
  Tensor<double, 4> p, dp, ds;               // [B, H, Tq, Tk]
  Tensor<double, 3> row_sum;                 // [B, H, Tq]
  Tensor<double, 4> dk_of_head, dv_of_head;  // [B, H, Tk, D], [B, H, Tk, E]
  Tensor<double, 4> dq, dk, dv;              // as q, k, v
  // The error that rounding may leave, one standard deviation for a whole head: [B, H] or [B, G].
  Tensor<double, 2> dq_error, dk_error, dv_error;
};

GradientRecipe correct_gradient_recipe();

// Calls work(b, h, i, j) for every pair that the softmax did not exclude.
template <class Work>
void for_each_weight(const GradientWalk& g, const Work& work) {
  const Walk& w = g.forward;
  for (Index b = 0; b < w.B; ++b) {
    for (Index h = 0; h < w.H; ++h) {
      for (Index i = 0; i < w.Tq; ++i) {
        for (Index j = 0; j < w.Tk; ++j) {
          if (!g.excluded(b, h, i, j)) work(b, h, i, j);
        }
      }
    }
  }
}

// Carries out the backward part of the walk's recipe; `finished` must outlive the result.
GradientWalk walk_back(const Walk& finished);

}  // namespace heedful::diagnosis

#endif  // HEEDFUL_INSPECTION_DIAGNOSE_GRADIENTS_H_
