#include "heedful/kernels/softmax.h"

#include <cmath>
#include <limits>

#include "heedful/kernels/rows.h"
#include "heedful/kernels/sum.h"

namespace heedful {
namespace {

// The largest of them; a NaN is passed over here and reaches the sum.
template <class Row>
auto row_maximum(const Row& x, Index count) {
  using T = std::remove_cvref_t<decltype(x[0])>;
  T maximum = -std::numeric_limits<T>::infinity();
  for (Index i = 0; i < count; ++i) maximum = x[i] > maximum ? x[i] : maximum;
  return maximum;
}

// Calls body(contiguous, n) for every row.
template <class Body, class... Strides>
void each_row(const Context& context, Index rows, Index columns, const Body& body, Strides... strides) {
  internal::for_rows(context, rows, columns, [&](Index begin, Index end) {
    internal::when_contiguous(
        [&](auto contiguous) {
          for (Index n = begin; n < end; ++n) body(contiguous, n);
        },
        strides...);
  });
}

}  // namespace

template <class T>
void softmax_forward(const Context& context, View<T, 2> y, In<T, 2> x) {
  internal::require_same_shape("softmax_forward", "y", y, x);
  const Index count = x.extent(1);
  const auto row = [&](auto contiguous, Index n) {
    const auto in = internal::row(contiguous, x, n);
    const auto out = internal::row(contiguous, y, n);
    const T maximum = row_maximum(in, count);
    for (Index v = 0; v < count; ++v) out[v] = std::exp(in[v] - maximum);
    const T total = internal::sum(count, [&](Index v) { return out[v]; });
    for (Index v = 0; v < count; ++v) out[v] /= total;
  };
  each_row(context, x.extent(0), count, row, x.stride(1), y.stride(1));
}

template <class T>
void softmax_backward(const Context& context, View<T, 2> dx, In<T, 2> dy, In<T, 2> y) {
  internal::require_same_shape("softmax_backward", "dx", dx, y);
  internal::require_same_shape("softmax_backward", "dy", dy, y);
  const Index count = y.extent(1);
  const auto row = [&](auto contiguous, Index n) {
    const auto up = internal::row(contiguous, dy, n);
    const auto p = internal::row(contiguous, y, n);
    const auto out = internal::row(contiguous, dx, n);
    const T mean = internal::sum(count, [&](Index v) { return up[v] * p[v]; });
    for (Index v = 0; v < count; ++v) out[v] = p[v] * (up[v] - mean);
  };
  each_row(context, y.extent(0), count, row, dx.stride(1), dy.stride(1), y.stride(1));
}

template <class T>
void log_softmax_forward(const Context& context, View<T, 2> y, In<T, 2> x) {
  internal::require_same_shape("log_softmax_forward", "y", y, x);
  const Index count = x.extent(1);
  const auto row = [&](auto contiguous, Index n) {
    const auto in = internal::row(contiguous, x, n);
    const auto out = internal::row(contiguous, y, n);
    const T maximum = row_maximum(in, count);
    const T log_total = std::log(internal::sum(count, [&](Index v) { return std::exp(in[v] - maximum); }));
    for (Index v = 0; v < count; ++v) out[v] = (in[v] - maximum) - log_total;
  };
  each_row(context, x.extent(0), count, row, x.stride(1), y.stride(1));
}

template <class T>
void log_softmax_backward(const Context& context, View<T, 2> dx, In<T, 2> dy, In<T, 2> y) {
  internal::require_same_shape("log_softmax_backward", "dx", dx, y);
  internal::require_same_shape("log_softmax_backward", "dy", dy, y);
  const Index count = y.extent(1);
  const auto row = [&](auto contiguous, Index n) {
    const auto up = internal::row(contiguous, dy, n);
    const auto log_p = internal::row(contiguous, y, n);
    const auto out = internal::row(contiguous, dx, n);
    const T total = internal::sum(count, [&](Index v) { return up[v]; });
    for (Index v = 0; v < count; ++v) out[v] = up[v] - std::exp(log_p[v]) * total;
  };
  each_row(context, y.extent(0), count, row, dx.stride(1), dy.stride(1), y.stride(1));
}

#define HEEDFUL_INSTANTIATE(T)                                                       \
  template void softmax_forward<T>(const Context&, View<T, 2>, In<T, 2>);            \
  template void softmax_backward<T>(const Context&, View<T, 2>, In<T, 2>, In<T, 2>); \
  template void log_softmax_forward<T>(const Context&, View<T, 2>, In<T, 2>);        \
  template void log_softmax_backward<T>(const Context&, View<T, 2>, In<T, 2>, In<T, 2>);
HEEDFUL_INSTANTIATE(float)
HEEDFUL_INSTANTIATE(double)
#undef HEEDFUL_INSTANTIATE

}  // namespace heedful
