#include "heedful/kernels/activation.h"

#include <numbers>

#include "heedful/kernels/dense_rows.h"
#include "heedful/kernels/rows.h"
#include "heedful/kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heedful/kernels/activation.cc"
#include "hwy/foreach_target.h"  // first: it includes this file once a target

#include "heedful/kernels/normal-inl.h"
#include "heedful/kernels/row_math-inl.h"

#ifndef HEEDFUL_KERNELS_ACTIVATION_WORK_
#define HEEDFUL_KERNELS_ACTIVATION_WORK_
namespace heedful {

// y = act(x)·up or y = act(x), and backward dx and dup; what a pass does not have stays empty.
template <class T>
struct ActivationWork {
  Activation kind;
  Index columns;
  internal::Rows<const T> x, up, dy;
  internal::Rows<T> y, dx, dup;
};

}  // namespace heedful
#endif

HWY_BEFORE_NAMESPACE();
namespace heedful {
namespace HWY_NAMESPACE {

template <class V>
struct ValueAndSlope {
  V value, slope;  // act(x), act′(x); a caller that needs one does not pay for the other
};

struct Relu {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE ValueAndSlope<V> of(D d, V x) {
    const V zero = hn::Zero(d);
    return {hn::IfThenZeroElse(hn::Lt(x, zero), x),  // a NaN stays one
            hn::IfThenElseZero(hn::Gt(x, zero), hn::Set(d, hn::TFromD<D>{1}))};
  }
};

struct Gelu {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE ValueAndSlope<V> of(D d, V x) {
    using T = hn::TFromD<D>;
    constexpr T kInverseRoot2Pi = std::numbers::inv_sqrtpi_v<T> / std::numbers::sqrt2_v<T>;
    const auto [tail, power] = Normal(d, x);
    const auto left = hn::Lt(x, hn::Zero(d));
    const V product = hn::Mul(x, tail);
    const V probability = hn::IfThenElse(left, tail, hn::Sub(hn::Set(d, T{1}), tail));
    const V density = hn::Mul(power, hn::Set(d, kInverseRoot2Pi));
    return {hn::IfThenElse(left, product, hn::Sub(x, product)), hn::Add(probability, hn::Mul(x, density))};
  }
};

// s = 1/(1 + exp(−x)) and 1 − s, neither by cancellation nor through an overflow.
template <class V>
struct LogisticPair {
  V value, rest;
};
template <class D, class V = hn::Vec<D>>
HWY_INLINE LogisticPair<V> Logistic(D d, V x) {
  const V one = hn::Set(d, hn::TFromD<D>{1});
  const V power = ExpFlushed(d, hn::Neg(hn::Abs(x)));
  const V near = hn::Div(one, hn::Add(one, power)), far = hn::Mul(power, near);
  const auto left = hn::Lt(x, hn::Zero(d));
  return {hn::IfThenElse(left, far, near), hn::IfThenElse(left, near, far)};
}

// (1 + tanh u)/2 = 1/(1 + exp(−2u)), which does not cancel.
struct GeluTanh {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE ValueAndSlope<V> of(D d, V x) {
    using T = hn::TFromD<D>;
    constexpr T kCubic = static_cast<T>(0.044715), kCubicSlope = static_cast<T>(3 * 0.044715);
    constexpr T kTwiceRoot = 2 * std::numbers::sqrt2_v<T> * std::numbers::inv_sqrtpi_v<T>;  // 2·√(2/π)
    const V one = hn::Set(d, T{1}), root = hn::Set(d, kTwiceRoot), square = hn::Mul(x, x);
    const V twice_u = hn::Mul(hn::Mul(root, x), hn::Add(one, hn::Mul(hn::Set(d, kCubic), square)));
    const V twice_slope = hn::Mul(root, hn::Add(one, hn::Mul(hn::Set(d, kCubicSlope), square)));
    const auto s = Logistic(d, twice_u);
    const V value = hn::Mul(x, s.value);
    return {value, hn::Add(s.value, hn::Mul(hn::Mul(value, s.rest), twice_slope))};
  }
};

struct Silu {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE ValueAndSlope<V> of(D d, V x) {
    const auto s = Logistic(d, x);
    const V value = hn::Mul(x, s.value);
    return {value, hn::Add(s.value, hn::Mul(value, s.rest))};
  }
};

template <class Function, class T>
HWY_INLINE void Activate(const ActivationWork<T>& work, Index begin, Index end) {
  const hn::ScalableTag<T> d;
  for (Index n = begin; n < end; ++n) {
    const T* x = work.x[n];
    T* y = work.y[n];
    if (work.up) {
      const T* up = work.up[n];
      EachPart(d, work.columns, [&](auto part) HWY_ATTR {
        part.store(hn::Mul(Function::of(d, part.load(x)).value, part.load(up)), y);
      });
    } else {
      EachPart(d, work.columns, [&](auto part) HWY_ATTR { part.store(Function::of(d, part.load(x)).value, y); });
    }
  }
}

template <class Function, class T>
HWY_INLINE void ActivateBackward(const ActivationWork<T>& work, Index begin, Index end) {
  const hn::ScalableTag<T> d;
  for (Index n = begin; n < end; ++n) {
    const T *x = work.x[n], *dy = work.dy[n];
    T* dx = work.dx[n];
    if (work.up) {
      const T* up = work.up[n];
      T* dup = work.dup[n];
      EachPart(d, work.columns, [&](auto part) HWY_ATTR {
        const auto act = Function::of(d, part.load(x));
        const auto slope = part.load(dy);
        const auto dgate = hn::Mul(hn::Mul(slope, part.load(up)), act.slope);
        part.store(hn::Mul(slope, act.value), dup);
        part.store(dgate, dx);
      });
    } else {
      EachPart(d, work.columns, [&](auto part) HWY_ATTR {
        part.store(hn::Mul(part.load(dy), Function::of(d, part.load(x)).slope), dx);
      });
    }
  }
}

template <class T>
void ActivateRows(const ActivationWork<T>& work, Index begin, Index end) {
  switch (work.kind) {
    case Activation::relu:
      return Activate<Relu>(work, begin, end);
    case Activation::gelu:
      return Activate<Gelu>(work, begin, end);
    case Activation::gelu_tanh:
      return Activate<GeluTanh>(work, begin, end);
    case Activation::silu:
      return Activate<Silu>(work, begin, end);
  }
}

template <class T>
void ActivateRowsBackward(const ActivationWork<T>& work, Index begin, Index end) {
  switch (work.kind) {
    case Activation::relu:
      return ActivateBackward<Relu>(work, begin, end);
    case Activation::gelu:
      return ActivateBackward<Gelu>(work, begin, end);
    case Activation::gelu_tanh:
      return ActivateBackward<GeluTanh>(work, begin, end);
    case Activation::silu:
      return ActivateBackward<Silu>(work, begin, end);
  }
}

HEEDFUL_ROW_KERNEL(ActivateRows, ActivationWork)
HEEDFUL_ROW_KERNEL(ActivateRowsBackward, ActivationWork)

}  // namespace HWY_NAMESPACE
}  // namespace heedful
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heedful {
namespace {

HEEDFUL_ROW_KERNEL_CHOICE(activate_rows, ActivateRows, ActivationWork)
HEEDFUL_ROW_KERNEL_CHOICE(activate_rows_backward, ActivateRowsBackward, ActivationWork)

void require_kind(const char* where, Activation kind) {
  const int value = static_cast<int>(kind);
  require(0 <= value && value <= static_cast<int>(Activation::silu), where,
          "kind: expected relu, gelu, gelu_tanh or silu, got {}", value);
}

}  // namespace

template <class T>
void activation_forward(const Context& context, View<T, 2> y, In<T, 2> x, Activation kind) {
  require_kind("activation_forward", kind);
  internal::require_same_shape("activation_forward", "y", y, x);
  const internal::DenseRows<T> out(y);
  const internal::DenseRows<const T> in(x);
  const ActivationWork<T> work{kind, x.extent(1), in.rows(), {}, {}, out.rows(), {}, {}};
  internal::for_rows(context, x.extent(0), x.extent(1), [&](Index b, Index e) { activate_rows(work, b, e); });
}

template <class T>
void activation_backward(const Context& context, View<T, 2> dx, In<T, 2> dy, In<T, 2> x, Activation kind) {
  require_kind("activation_backward", kind);
  internal::require_same_shape("activation_backward", "dx", dx, x);
  internal::require_same_shape("activation_backward", "dy", dy, x);
  const internal::DenseRows<T> out(dx);
  const internal::DenseRows<const T> in(x), slope(dy);
  const ActivationWork<T> work{kind, x.extent(1), in.rows(), {}, slope.rows(), {}, out.rows(), {}};
  internal::for_rows(context, x.extent(0), x.extent(1),
                     [&](Index b, Index e) { activate_rows_backward(work, b, e); });
}

template <class T>
void gated_forward(const Context& context, View<T, 2> y, const GatedInput<const std::type_identity_t<T>>& x,
                   Activation kind) {
  require_kind("gated_forward", kind);
  internal::require_same_shape("gated_forward", "gate", x.gate, y);
  internal::require_same_shape("gated_forward", "up", x.up, y);
  const internal::DenseRows<T> out(y);
  const internal::DenseRows<const T> gate(x.gate), up(x.up);
  const ActivationWork<T> work{kind, y.extent(1), gate.rows(), up.rows(), {}, out.rows(), {}, {}};
  internal::for_rows(context, y.extent(0), y.extent(1), [&](Index b, Index e) { activate_rows(work, b, e); });
}

template <class T>
void gated_backward(const Context& context, const GatedInput<T>& dx, In<T, 2> dy,
                    const GatedInput<const std::type_identity_t<T>>& x, Activation kind) {
  require_kind("gated_backward", kind);
  internal::require_same_shape("gated_backward", "gate", x.gate, dy);
  internal::require_same_shape("gated_backward", "up", x.up, dy);
  internal::require_same_shape("gated_backward", "dgate", dx.gate, dy);
  internal::require_same_shape("gated_backward", "dup", dx.up, dy);
  const internal::DenseRows<T> dgate(dx.gate), dup(dx.up);
  const internal::DenseRows<const T> gate(x.gate), up(x.up), slope(dy);
  const ActivationWork<T> work{kind,         dy.extent(1), gate.rows(),  up.rows(),
                               slope.rows(), {},           dgate.rows(), dup.rows()};
  internal::for_rows(context, dy.extent(0), dy.extent(1),
                     [&](Index b, Index e) { activate_rows_backward(work, b, e); });
}

#define HEEDFUL_INSTANTIATE(T)                                                                                \
  template void activation_forward<T>(const Context&, View<T, 2>, In<T, 2>, Activation);                      \
  template void activation_backward<T>(const Context&, View<T, 2>, In<T, 2>, In<T, 2>, Activation);           \
  template void gated_forward<T>(const Context&, View<T, 2>, const GatedInput<const T>&, Activation);         \
  template void gated_backward<T>(const Context&, const GatedInput<T>&, In<T, 2>, const GatedInput<const T>&, \
                                  Activation);
HEEDFUL_INSTANTIATE(float)
HEEDFUL_INSTANTIATE(double)
#undef HEEDFUL_INSTANTIATE

}  // namespace heedful
#endif  // HWY_ONCE
