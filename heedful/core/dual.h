// Dual numbers: a value and its derivative along one direction, carried exactly through every operation. A formula
// written for any scalar then gives its derivative without a step size: forward-mode differentiation.
//
//     f(a + a'ε) = f(a) + f'(a)·a' ε,   ε² = 0
//
// Source: Griewank & Walther, Evaluating Derivatives, 2nd ed., §3.1.
#ifndef HEEDFUL_CORE_DUAL_H_
#define HEEDFUL_CORE_DUAL_H_

#include <cmath>
#include <numbers>

namespace heedful {

struct Dual {
  double value = 0;
  double slope = 0;

  Dual() = default;
  Dual(double v) : value(v) {}  // NOLINT(google-explicit-constructor): a constant has slope 0
  Dual(double v, double s) : value(v), slope(s) {}

  Dual& operator+=(const Dual& b) { return *this = Dual{value + b.value, slope + b.slope}; }
  friend Dual operator+(Dual a, const Dual& b) { return a += b; }
  friend Dual operator-(const Dual& a, const Dual& b) { return {a.value - b.value, a.slope - b.slope}; }
  friend Dual operator-(const Dual& a) { return {-a.value, -a.slope}; }
  friend Dual operator*(const Dual& a, const Dual& b) {
    return {a.value * b.value, a.slope * b.value + a.value * b.slope};
  }
  friend Dual operator/(const Dual& a, const Dual& b) {
    const double quotient = a.value / b.value;
    return {quotient, (a.slope - quotient * b.slope) / b.value};
  }
  friend bool operator<(const Dual& a, const Dual& b) { return a.value < b.value; }
};

inline Dual exp(const Dual& a) {
  return {std::exp(a.value), std::exp(a.value) * a.slope};
}
inline Dual log(const Dual& a) {
  return {std::log(a.value), a.slope / a.value};
}
inline Dual sqrt(const Dual& a) {
  return {std::sqrt(a.value), a.slope / (2 * std::sqrt(a.value))};
}
inline Dual tanh(const Dual& a) {
  const double t = std::tanh(a.value);
  return {t, (1 - t * t) * a.slope};
}
inline Dual erf(const Dual& a) {
  return {std::erf(a.value), 2 * std::numbers::inv_sqrtpi * std::exp(-a.value * a.value) * a.slope};
}

}  // namespace heedful

#endif  // HEEDFUL_CORE_DUAL_H_
