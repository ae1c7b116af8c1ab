// Dual numbers: a value and its slope along one direction, carried through a formula by the rules of differentiation.
// A forward formula written for any scalar, evaluated on duals, gives J·u to rounding, with no step size to choose
// and nothing in common with the backward pass it is to judge.
#ifndef HEEDFUL_KERNELS_DUAL_H_
#define HEEDFUL_KERNELS_DUAL_H_

#include <cmath>
#include <compare>
#include <numbers>

namespace heedful {

struct Dual {
  double value = 0;
  double slope = 0;

  constexpr Dual() = default;
  constexpr Dual(double v, double s = 0) : value(v), slope(s) {}  // NOLINT(google-explicit-constructor)

  Dual& operator+=(Dual b) { return *this = {value + b.value, slope + b.slope}; }
  friend Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.slope + b.slope}; }
  friend Dual operator-(Dual a, Dual b) { return {a.value - b.value, a.slope - b.slope}; }
  friend Dual operator-(Dual a) { return {-a.value, -a.slope}; }
  friend Dual operator*(Dual a, Dual b) { return {a.value * b.value, a.slope * b.value + a.value * b.slope}; }
  friend Dual operator/(Dual a, Dual b) {
    const double quotient = a.value / b.value;
    return {quotient, (a.slope - quotient * b.slope) / b.value};
  }
  friend auto operator<=>(Dual a, Dual b) { return a.value <=> b.value; }
  friend bool operator==(Dual a, Dual b) { return a.value == b.value; }
};

inline Dual exp(Dual x) {
  return {std::exp(x.value), std::exp(x.value) * x.slope};
}
inline Dual log(Dual x) {
  return {std::log(x.value), x.slope / x.value};
}
inline Dual sqrt(Dual x) {
  return {std::sqrt(x.value), x.slope / (2 * std::sqrt(x.value))};
}
inline Dual tanh(Dual x) {
  const double t = std::tanh(x.value);
  return {t, (1 - t * t) * x.slope};
}
inline Dual erfc(Dual x) {
  return {std::erfc(x.value), -2 * std::numbers::inv_sqrtpi * std::exp(-x.value * x.value) * x.slope};
}

}  // namespace heedful

#endif  // HEEDFUL_KERNELS_DUAL_H_
