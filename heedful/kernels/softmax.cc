#include "heedful/kernels/softmax.h"

#include <cmath>

#include "heedful/kernels/dense_rows.h"
#include "heedful/kernels/rows.h"
#include "heedful/kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heedful/kernels/softmax.cc"
#include "hwy/foreach_target.h"  // first: it includes this file once a target

#include "heedful/kernels/row_math-inl.h"
#include "heedful/kernels/vector_math-inl.h"

#ifndef HEEDFUL_KERNELS_SOFTMAX_WORK_
#define HEEDFUL_KERNELS_SOFTMAX_WORK_
namespace heedful {

template <class T>
struct SoftmaxForward {
  internal::Rows<T> y;
  internal::Rows<const T> x;
  Index columns;
};

template <class T>
struct SoftmaxBackward {
  internal::Rows<T> dx;
  internal::Rows<const T> dy, y;
  Index columns;
};

}  // namespace heedful
#endif

HWY_BEFORE_NAMESPACE();
namespace heedful {
namespace HWY_NAMESPACE {

template <class T>
void SoftmaxRows(const SoftmaxForward<T>& work, Index begin, Index end) {
  const hn::ScalableTag<T> d;
  for (Index n = begin; n < end; ++n) {
    const T* x = work.x[n];
    T* y = work.y[n];
    const auto maximum = hn::Set(d, Largest(d, x, work.columns));
    const T total = SumParts(d, work.columns, [&](auto part) HWY_ATTR {
      const auto power = ExpFlushed(d, hn::Sub(part.load(x), maximum));
      part.store(power, y);
      return power;
    });
    const auto divisor = hn::Set(d, total);
    EachPart(d, work.columns, [&](auto part) HWY_ATTR { part.store(hn::Div(part.load(y), divisor), y); });
  }
}

template <class T>
void SoftmaxRowsBackward(const SoftmaxBackward<T>& work, Index begin, Index end) {
  const hn::ScalableTag<T> d;
  for (Index n = begin; n < end; ++n) {
    const T *dy = work.dy[n], *y = work.y[n];
    T* dx = work.dx[n];
    const auto mean = hn::Set(
        d, SumParts(d, work.columns, [&](auto part) HWY_ATTR { return hn::Mul(part.load(dy), part.load(y)); }));
    EachPart(d, work.columns,
             [&](auto part) HWY_ATTR { part.store(hn::Mul(part.load(y), hn::Sub(part.load(dy), mean)), dx); });
  }
}

template <class T>
void LogSoftmaxRows(const SoftmaxForward<T>& work, Index begin, Index end) {
  const hn::ScalableTag<T> d;
  for (Index n = begin; n < end; ++n) {
    const T* x = work.x[n];
    T* y = work.y[n];
    const auto maximum = hn::Set(d, Largest(d, x, work.columns));
    const T total =
        SumParts(d, work.columns, [&](auto part) HWY_ATTR { return ExpFlushed(d, hn::Sub(part.load(x), maximum)); });
    const auto log_total = hn::Set(d, std::log(total));
    EachPart(d, work.columns,
             [&](auto part) HWY_ATTR { part.store(hn::Sub(hn::Sub(part.load(x), maximum), log_total), y); });
  }
}

template <class T>
void LogSoftmaxRowsBackward(const SoftmaxBackward<T>& work, Index begin, Index end) {
  const hn::ScalableTag<T> d;
  for (Index n = begin; n < end; ++n) {
    const T *dy = work.dy[n], *y = work.y[n];
    T* dx = work.dx[n];
    const auto total = hn::Set(d, SumParts(d, work.columns, [&](auto part) HWY_ATTR { return part.load(dy); }));
    EachPart(d, work.columns, [&](auto part) HWY_ATTR {
      part.store(hn::Sub(part.load(dy), hn::Mul(Exp(d, part.load(y)), total)), dx);
    });
  }
}

HEEDFUL_ROW_KERNEL(SoftmaxRows, SoftmaxForward)
HEEDFUL_ROW_KERNEL(SoftmaxRowsBackward, SoftmaxBackward)
HEEDFUL_ROW_KERNEL(LogSoftmaxRows, SoftmaxForward)
HEEDFUL_ROW_KERNEL(LogSoftmaxRowsBackward, SoftmaxBackward)

}  // namespace HWY_NAMESPACE
}  // namespace heedful
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heedful {
namespace {

HEEDFUL_ROW_KERNEL_CHOICE(softmax_rows, SoftmaxRows, SoftmaxForward)
HEEDFUL_ROW_KERNEL_CHOICE(softmax_rows_backward, SoftmaxRowsBackward, SoftmaxBackward)
HEEDFUL_ROW_KERNEL_CHOICE(log_softmax_rows, LogSoftmaxRows, SoftmaxForward)
HEEDFUL_ROW_KERNEL_CHOICE(log_softmax_rows_backward, LogSoftmaxRowsBackward, SoftmaxBackward)

template <class T, class Kernel>
void forward(const char* where, const Context& context, View<T, 2> y, View<const T, 2> x, const Kernel& kernel) {
  internal::require_same_shape(where, "y", y, x);
  const internal::DenseRows<T> out(y);
  const internal::DenseRows<const T> in(x);
  const SoftmaxForward<T> work{out.rows(), in.rows(), x.extent(1)};
  internal::for_rows(context, x.extent(0), x.extent(1), [&](Index begin, Index end) { kernel(work, begin, end); });
}

template <class T, class Kernel>
void backward(const char* where, const Context& context, View<T, 2> dx, View<const T, 2> dy, View<const T, 2> y,
              const Kernel& kernel) {
  internal::require_same_shape(where, "dx", dx, y);
  internal::require_same_shape(where, "dy", dy, y);
  const internal::DenseRows<T> out(dx);
  const internal::DenseRows<const T> up(dy), saved(y);
  const SoftmaxBackward<T> work{out.rows(), up.rows(), saved.rows(), y.extent(1)};
  internal::for_rows(context, y.extent(0), y.extent(1), [&](Index begin, Index end) { kernel(work, begin, end); });
}

}  // namespace

template <class T>
void softmax_forward(const Context& context, View<T, 2> y, In<T, 2> x) {
  forward<T>("softmax_forward", context, y, x, [](const auto& work, Index b, Index e) { softmax_rows(work, b, e); });
}

template <class T>
void softmax_backward(const Context& context, View<T, 2> dx, In<T, 2> dy, In<T, 2> y) {
  backward<T>("softmax_backward", context, dx, dy, y,
              [](const auto& work, Index b, Index e) { softmax_rows_backward(work, b, e); });
}

template <class T>
void log_softmax_forward(const Context& context, View<T, 2> y, In<T, 2> x) {
  forward<T>("log_softmax_forward", context, y, x,
             [](const auto& work, Index b, Index e) { log_softmax_rows(work, b, e); });
}

template <class T>
void log_softmax_backward(const Context& context, View<T, 2> dx, In<T, 2> dy, In<T, 2> y) {
  backward<T>("log_softmax_backward", context, dx, dy, y,
              [](const auto& work, Index b, Index e) { log_softmax_rows_backward(work, b, e); });
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
#endif  // HWY_ONCE
