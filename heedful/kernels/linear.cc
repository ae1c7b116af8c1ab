#include "heedful/kernels/linear.h"

#include "heedful/kernels/dense_rows.h"
#include "heedful/kernels/matmul.h"
#include "heedful/kernels/rows.h"
#include "heedful/kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heedful/kernels/linear.cc"
#include "hwy/foreach_target.h"  // first: it includes this file once a target

#include "heedful/kernels/row_math-inl.h"

#ifndef HEEDFUL_KERNELS_LINEAR_WORK_
#define HEEDFUL_KERNELS_LINEAR_WORK_
namespace heedful {

// Columns whose sums one task takes.
constexpr Index kBiasColumns = 64;

template <class T>
struct BiasBackward {
  View<T, 1> dbias;
  internal::Rows<const T> dy;
  Index rows, columns;
};

}  // namespace heedful
#endif

HWY_BEFORE_NAMESPACE();
namespace heedful {
namespace HWY_NAMESPACE {

// dbias += Σ_n dy for groups of columns: rows add up in their order, whoever takes the group.
template <class T>
void AddColumnSums(const BiasBackward<T>& work, Index begin, Index end) {
  const hn::ScalableTag<T> d;
  for (Index group = begin; group < end; ++group) {
    const Index first = group * kBiasColumns, count = HWY_MIN(kBiasColumns, work.columns - first);
    HWY_ALIGN T sums[kBiasColumns];
    SumColumns<1>(
        d, work.rows, 0, count,
        [&](Index n, auto part, auto& sum) HWY_ATTR { sum[0] = hn::Add(sum[0], part.load(work.dy[n] + first)); },
        [&](auto part, const auto& sum) HWY_ATTR { part.store(sum[0], sums); });
    for (Index c = 0; c < count; ++c) work.dbias[first + c] += sums[c];
  }
}

HEEDFUL_ROW_KERNEL(AddColumnSums, BiasBackward)

}  // namespace HWY_NAMESPACE
}  // namespace heedful
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heedful {
namespace {

HEEDFUL_ROW_KERNEL_CHOICE(add_column_sums, AddColumnSums, BiasBackward)

}  // namespace

template <class T>
void bias_backward(const Context& context, View<T, 1> dbias, In<T, 2> dy) {
  internal::require_shape("bias_backward", "dbias", dbias, {dy.extent(1)});
  const internal::DenseRows<const T> up(dy);
  const BiasBackward<T> work{.dbias = dbias, .dy = up.rows(), .rows = dy.extent(0), .columns = dy.extent(1)};
  const Index groups = (work.columns + kBiasColumns - 1) / kBiasColumns;
  internal::for_rows(context, groups, work.rows * kBiasColumns,
                     [&](Index begin, Index end) { add_column_sums(work, begin, end); });
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
#endif  // HWY_ONCE
