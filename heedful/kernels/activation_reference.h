// activation.h by its formulas, in any scalar (double, Dual): the yardstick of activation.cc.
#ifndef HEEDFUL_KERNELS_ACTIVATION_REFERENCE_H_
#define HEEDFUL_KERNELS_ACTIVATION_REFERENCE_H_

#include <cmath>
#include <numbers>

#include "heedful/core/error.h"
#include "heedful/kernels/activation.h"

namespace heedful {

template <class T>
T activation_reference(T x, Activation kind) {
  using std::erfc, std::exp, std::tanh;
  switch (kind) {
    case Activation::relu:
      return x > T(0) ? x : T(0);
    case Activation::gelu:
      return x * erfc(-x / T(std::numbers::sqrt2)) / T(2);
    case Activation::gelu_tanh: {
      const T root = std::sqrt(2 / std::numbers::pi);
      return x / T(2) * (T(1) + tanh(root * (x + T(0.044715) * x * x * x)));
    }
    case Activation::silu:
      return x < T(0) ? x * exp(x) / (T(1) + exp(x)) : x / (T(1) + exp(-x));  // neither overflows
  }
  fail("activation_reference", "kind: expected an activation, got {}", static_cast<int>(kind));
}

}  // namespace heedful

#endif  // HEEDFUL_KERNELS_ACTIVATION_REFERENCE_H_
