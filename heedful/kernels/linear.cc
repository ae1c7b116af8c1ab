#include "heedful/kernels/linear.h"

#include <array>

#include "heedful/kernels/matmul.h"
#include "heedful/kernels/rows.h"

namespace heedful {
namespace {

// Columns whose running sums are kept at once while the rows go by.
constexpr Index kColumnsTogether = 64;

}  // namespace

template <class T>
void bias_backward(const Context& context, View<T, 1> dbias, In<T, 2> dy) {
  internal::require_shape("bias_backward", "dbias", dbias, {dy.extent(1)});
  const Index groups = (dy.extent(1) + kColumnsTogether - 1) / kColumnsTogether;
  internal::for_rows(context, groups, dy.extent(0) * kColumnsTogether, [&](Index first, Index last) {
    for (Index group = first; group < last; ++group) {
      const Index begin = group * kColumnsTogether;
      const Index count = std::min(kColumnsTogether, dy.extent(1) - begin);
      const View<const T, 2> columns = dy.slice(1, begin, begin + count);
      std::array<T, kColumnsTogether> sums{};
      internal::when_contiguous(
          [&](auto contiguous) {
            for (Index n = 0; n < dy.extent(0); ++n) {
              const auto in = internal::row(contiguous, columns, n);
              for (Index o = 0; o < count; ++o) sums[static_cast<std::size_t>(o)] += in[o];
            }
          },
          dy.stride(1));
      for (Index o = 0; o < count; ++o) dbias[begin + o] += sums[static_cast<std::size_t>(o)];
    }
  });
}

template <class T>
void linear_forward(const Context& context, View<T, 2> y, In<T, 2> x, In<T, 2> w, In<T, 1> bias, In<T, 2> residual) {
  matmul(context, y, x, w, {.bias = bias, .residual = residual});
}

template <class T>
void linear_backward(const Context& context, const LinearGradients<T>& gradients, In<T, 2> dy, In<T, 2> x,
                     In<T, 2> w) {
  if (!gradients.dx.empty()) {
    matmul(context, gradients.dx, dy, w.transpose(), {.accumulate = gradients.accumulate_dx});
  }
  if (!gradients.dw.empty()) matmul(context, gradients.dw, x.transpose(), dy, {.accumulate = true});
  if (!gradients.dbias.empty()) bias_backward(context, gradients.dbias, dy);
}

#define HEEDFUL_INSTANTIATE(T)                                                                         \
  template void bias_backward<T>(const Context&, View<T, 1>, In<T, 2>);                                \
  template void linear_forward<T>(const Context&, View<T, 2>, In<T, 2>, In<T, 2>, In<T, 1>, In<T, 2>); \
  template void linear_backward<T>(const Context&, const LinearGradients<T>&, In<T, 2>, In<T, 2>, In<T, 2>);
HEEDFUL_INSTANTIATE(float)
HEEDFUL_INSTANTIATE(double)
#undef HEEDFUL_INSTANTIATE

}  // namespace heedful
