// Dual numbers: a value and its derivative along one direction, carried exactly through every operation. A formula
// written for any scalar then gives its derivative without a step size: forward-mode differentiation.
//
//     f(a + a'ε) = f(a) + f'(a)·a' ε,   ε² = 0
//
// Source: Griewank & Walther, Evaluating Derivatives, 2nd ed., §3.1.
#ifndef HEEDFUL_CORE_DUAL_H_
#define HEEDFUL_CORE_DUAL_H_

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

inline Dual exp(Dual a) {
  return {std::exp(a.value), std::exp(a.value) * a.slope};
}
inline Dual log(Dual a) {
  return {std::log(a.value), a.slope / a.value};
}
inline Dual sqrt(Dual a) {
  return {std::sqrt(a.value), a.slope / (2 * std::sqrt(a.value))};
}
inline Dual tanh(Dual a) {
  const double t = std::tanh(a.value);
  return {t, (1 - t * t) * a.slope};
}
inline Dual erf(Dual a) {
  return {std::erf(a.value), 2 * std::numbers::inv_sqrtpi * std::exp(-a.value * a.value) * a.slope};
}
inline Dual erfc(Dual a) {
  return {std::erfc(a.value), -2 * std::numbers::inv_sqrtpi * std::exp(-a.value * a.value) * a.slope};
}

}  // namespace heedful

#endif  // HEEDFUL_CORE_DUAL_H_
