// The linear layer.
//
//     y[n, o] = Σ_i x[n, i]·w[i, o] + bias[o] + residual[n, o]
//
// x [N, I], w [I, O], bias [O] or empty, residual and y [N, O]; the residual is optional.
//
//     dx = dy·wᵀ        dw += xᵀ·dy        dbias += Σ_n dy[n, ·]
//
// Products follow matmul.h. The bias is added to the finished chain, then the residual; the sum of dbias runs over
// ascending n from 0 and is then added to dbias. Throws Error when the shapes do not fit.
#ifndef HEEDFUL_KERNELS_LINEAR_H_
#define HEEDFUL_KERNELS_LINEAR_H_

#include "heedful/core/context.h"
#include "heedful/core/view.h"

namespace heedful {

template <class T>
void linear_forward(const Context& context, View<T, 2> y, In<T, 2> x, In<T, 2> w, In<T, 1> bias,
                    In<T, 2> residual = {});

// An empty view among the gradients is a gradient nobody asked for.
template <class T>
struct LinearGradients {
  View<T, 2> dx;               // [N, I], assigned
  View<T, 2> dw;               // [I, O], added to
  View<T, 1> dbias;            // [O], added to
  bool accumulate_dx = false;  // add to dx instead, for an input that feeds several layers
};

template <class T>
void linear_backward(const Context& context, const LinearGradients<T>& gradients, In<T, 2> dy, In<T, 2> x,
                     In<T, 2> w);

// dbias[o] += Σ_n dy[n, o]
template <class T>
void bias_backward(const Context& context, View<T, 1> dbias, In<T, 2> dy);

}  // namespace heedful

#endif  // HEEDFUL_KERNELS_LINEAR_H_
