// Softmax and log-softmax of every row.
//
//     y[n, v] = exp(x[n, v] − m[n]) / Σ_u exp(x[n, u] − m[n]),     m[n] = max_u x[n, u]         x, y [N, V]
//     dx[n, v] = y[n, v]·(dy[n, v] − Σ_u dy[n, u]·y[n, u])
//
//     log-softmax: y[n, v] = (x[n, v] − m[n]) − log Σ_u exp(x[n, u] − m[n])
//     dx[n, v] = dy[n, v] − exp(y[n, v])·Σ_u dy[n, u]
//
// −∞ is a score of weight 0; a row of nothing but −∞, a +∞ or a NaN gives NaN (attention has its own rule for rows
// that see nothing). A power below the smallest normal number is 0. Sums follow sum.h, so a row's result depends on
// that row alone. Outputs may be their inputs.
// Throws Error when the shapes differ.
#ifndef HEEDFUL_KERNELS_SOFTMAX_H_
#define HEEDFUL_KERNELS_SOFTMAX_H_

#include "heedful/core/context.h"
#include "heedful/core/view.h"

namespace heedful {

template <class T>
void softmax_forward(const Context& context, View<T, 2> y, In<T, 2> x);
template <class T>
void softmax_backward(const Context& context, View<T, 2> dx, In<T, 2> dy, In<T, 2> y);

template <class T>
void log_softmax_forward(const Context& context, View<T, 2> y, In<T, 2> x);
template <class T>
void log_softmax_backward(const Context& context, View<T, 2> dx, In<T, 2> dy, In<T, 2> y);

}  // namespace heedful

#endif  // HEEDFUL_KERNELS_SOFTMAX_H_
