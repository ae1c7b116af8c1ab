// Embedding: rows of a table, chosen by token.
//
//     y[n, ·] = table[tokens[n], ·]                    table [V, C], tokens [N], y [N, C]
//     dtable[tokens[n], ·] += dy[n, ·]                 in ascending n
//
// A token below 0 or not below V, or shapes that do not fit, throw Error before anything is written.
#ifndef HEEDFUL_KERNELS_EMBEDDING_H_
#define HEEDFUL_KERNELS_EMBEDDING_H_

#include <span>

#include "heedful/core/context.h"
#include "heedful/core/view.h"

namespace heedful {

template <class T>
void embedding_forward(const Context& context, View<T, 2> y, In<T, 2> table, std::span<const Index> tokens);
template <class T>
void embedding_backward(const Context& context, View<T, 2> dtable, In<T, 2> dy, std::span<const Index> tokens);

}  // namespace heedful

#endif  // HEEDFUL_KERNELS_EMBEDDING_H_
