#include "heedful/kernels/activation.h"

#include <cmath>
#include <numbers>

#include "heedful/kernels/rows.h"

namespace heedful {
namespace {

template <class T>
constexpr T kInverseRoot2 = T{1} / std::numbers::sqrt2_v<T>;
template <class T>
constexpr T kInverseRoot2Pi = kInverseRoot2<T> * std::numbers::inv_sqrtpi_v<T>;

// s = 1/(1 + exp(−x)) and 1 − s, neither by cancellation nor through an overflow.
template <class T>
struct Logistic {
  T value, rest;
  explicit Logistic(T x) {
    const T small = std::exp(-std::abs(x));
    const T near = T{1} / (T{1} + small), far = small * near;
    value = x < 0 ? far : near;
    rest = x < 0 ? near : far;
  }
};

struct Relu {
  template <class T>
  static T value(T x) {
    return x < 0 ? T{0} : x;  // a NaN stays one
  }
  template <class T>
  static T slope(T x) {
    return static_cast<T>(x > 0);  // written as a choice it becomes a branch, guessed wrong every other time
  }
};

// Φ(x) = erfc(−x/√2)/2 keeps its relative accuracy far to the left, where 1 + erf(x/√2) cancels.
struct Gelu {
  template <class T>
  static T value(T x) {
    return x * (std::erfc(-x * kInverseRoot2<T>) / 2);
  }
  template <class T>
  static T slope(T x) {
    return std::erfc(-x * kInverseRoot2<T>) / 2 + x * kInverseRoot2Pi<T> * std::exp(-x * x / 2);
  }
};

// (1 + tanh(u))/2 = 1/(1 + exp(−2u)), again without cancellation.
struct GeluTanh {
  template <class T>
  static T double_u(T x) {
    return 4 * kInverseRoot2Pi<T> * x * (1 + static_cast<T>(0.044715) * x * x);
  }
  template <class T>
  static T value(T x) {
    return x * Logistic(double_u(x)).value;
  }
  template <class T>
  static T slope(T x) {
    const Logistic<T> s(double_u(x));
    return s.value + x * s.value * s.rest * (4 * kInverseRoot2Pi<T> * (1 + static_cast<T>(3 * 0.044715) * x * x));
  }
};

struct Silu {
  template <class T>
  static T value(T x) {
    return x * Logistic(x).value;
  }
  template <class T>
  static T slope(T x) {
    const Logistic<T> s(x);
    return s.value + x * s.value * s.rest;
  }
};

template <class Body>
void with_function(Activation kind, const Body& body) {
  switch (kind) {
    case Activation::relu:
      return body(Relu{});
    case Activation::gelu:
      return body(Gelu{});
    case Activation::gelu_tanh:
      return body(GeluTanh{});
    case Activation::silu:
      return body(Silu{});
  }
  fail("activation", "kind: expected relu, gelu, gelu_tanh or silu, got {}", static_cast<int>(kind));
}

// Calls body(contiguous, function, n) for every row of a shape.
template <class Body, class... Strides>
void each_row(const Context& context, const Extents<2>& shape, Activation kind, const Body& body,
              Strides... strides) {
  with_function(kind, [&](auto function) {
    internal::for_rows(context, shape[0], shape[1], [&](Index begin, Index end) {
      internal::when_contiguous(
          [&](auto contiguous) {
            for (Index n = begin; n < end; ++n) body(contiguous, function, n);
          },
          strides...);
    });
  });
}

}  // namespace

template <class T>
void activation_forward(const Context& context, View<T, 2> y, In<T, 2> x, Activation kind) {
  internal::require_same_shape("activation_forward", "y", y, x);
  const auto row = [&](auto contiguous, auto function, Index n) {
    const auto in = internal::row(contiguous, x, n);
    const auto out = internal::row(contiguous, y, n);
    for (Index f = 0; f < x.extent(1); ++f) out[f] = function.value(in[f]);
  };
  each_row(context, x.extents(), kind, row, x.stride(1), y.stride(1));
}

template <class T>
void activation_backward(const Context& context, View<T, 2> dx, In<T, 2> dy, In<T, 2> x, Activation kind) {
  internal::require_same_shape("activation_backward", "dx", dx, x);
  internal::require_same_shape("activation_backward", "dy", dy, x);
  const auto row = [&](auto contiguous, auto function, Index n) {
    const auto in = internal::row(contiguous, x, n);
    const auto up = internal::row(contiguous, dy, n);
    const auto out = internal::row(contiguous, dx, n);
    for (Index f = 0; f < x.extent(1); ++f) out[f] = up[f] * function.slope(in[f]);
  };
  each_row(context, x.extents(), kind, row, x.stride(1), dy.stride(1), dx.stride(1));
}

template <class T>
void gated_forward(const Context& context, View<T, 2> y, const GatedInput<const std::type_identity_t<T>>& x,
                   Activation kind) {
  internal::require_same_shape("gated_forward", "gate", x.gate, y);
  internal::require_same_shape("gated_forward", "up", x.up, y);
  const auto row = [&](auto contiguous, auto function, Index n) {
    const auto gate = internal::row(contiguous, x.gate, n);
    const auto up = internal::row(contiguous, x.up, n);
    const auto out = internal::row(contiguous, y, n);
    for (Index f = 0; f < y.extent(1); ++f) out[f] = function.value(gate[f]) * up[f];
  };
  each_row(context, y.extents(), kind, row, y.stride(1), x.gate.stride(1), x.up.stride(1));
}

template <class T>
void gated_backward(const Context& context, const GatedInput<T>& dx, In<T, 2> dy,
                    const GatedInput<const std::type_identity_t<T>>& x, Activation kind) {
  internal::require_same_shape("gated_backward", "gate", x.gate, dy);
  internal::require_same_shape("gated_backward", "up", x.up, dy);
  internal::require_same_shape("gated_backward", "dgate", dx.gate, dy);
  internal::require_same_shape("gated_backward", "dup", dx.up, dy);
  const auto row = [&](auto contiguous, auto function, Index n) {
    const auto gate = internal::row(contiguous, x.gate, n);
    const auto up = internal::row(contiguous, x.up, n);
    const auto slope = internal::row(contiguous, dy, n);
    const auto dgate = internal::row(contiguous, dx.gate, n);
    const auto dup = internal::row(contiguous, dx.up, n);
    for (Index f = 0; f < dy.extent(1); ++f) {
      const T g = gate[f], u = up[f], d = slope[f];
      dgate[f] = d * u * function.slope(g);
      dup[f] = d * function.value(g);
    }
  };
  each_row(context, dy.extents(), kind, row, dy.stride(1), x.gate.stride(1), x.up.stride(1), dx.gate.stride(1),
           dx.up.stride(1));
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
