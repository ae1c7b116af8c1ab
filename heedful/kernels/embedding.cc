#include "heedful/kernels/embedding.h"

#include "heedful/kernels/rows.h"

namespace heedful {
namespace {

void require_tokens(const char* where, std::span<const Index> tokens, Index vocabulary) {
  for (std::size_t n = 0; n < tokens.size(); ++n) {
    if (tokens[n] < 0 || tokens[n] >= vocabulary) {
      fail(where, "tokens[{}]: expected 0 to {}, got {}", n, vocabulary - 1, tokens[n]);
    }
  }
}

}  // namespace

template <class T>
void embedding_forward(const Context& context, View<T, 2> y, In<T, 2> table, std::span<const Index> tokens) {
  const Index width = table.extent(1);
  internal::require_shape("embedding_forward", "y", y, {std::ssize(tokens), width});
  require_tokens("embedding_forward", tokens, table.extent(0));
  internal::for_rows(context, y.extent(0), width, [&](Index begin, Index end) {
    internal::when_contiguous(
        [&](auto contiguous) {
          for (Index n = begin; n < end; ++n) {
            const auto from = internal::row(contiguous, table, tokens[static_cast<std::size_t>(n)]);
            const auto to = internal::row(contiguous, y, n);
            for (Index c = 0; c < width; ++c) to[c] = from[c];
          }
        },
        y.stride(1), table.stride(1));
  });
}

// Threads share out the columns, not the rows: tokens repeat, and the order in which their gradients add up is fixed.
template <class T>
void embedding_backward(const Context& context, View<T, 2> dtable, In<T, 2> dy, std::span<const Index> tokens) {
  internal::require_shape("embedding_backward", "dy", dy, {std::ssize(tokens), dtable.extent(1)});
  require_tokens("embedding_backward", tokens, dtable.extent(0));
  internal::for_rows(context, dtable.extent(1), dy.extent(0), [&](Index begin, Index end) {
    internal::when_contiguous(
        [&](auto contiguous) {
          for (Index n = 0; n < dy.extent(0); ++n) {
            const auto from = internal::row(contiguous, dy, n);
            const auto to = internal::row(contiguous, dtable, tokens[static_cast<std::size_t>(n)]);
            for (Index c = begin; c < end; ++c) to[c] += from[c];
          }
        },
        dtable.stride(1), dy.stride(1));
  });
}

#define HEEDFUL_INSTANTIATE(T)                                                                      \
  template void embedding_forward<T>(const Context&, View<T, 2>, In<T, 2>, std::span<const Index>); \
  template void embedding_backward<T>(const Context&, View<T, 2>, In<T, 2>, std::span<const Index>);
HEEDFUL_INSTANTIATE(float)
HEEDFUL_INSTANTIATE(double)
#undef HEEDFUL_INSTANTIATE

}  // namespace heedful
