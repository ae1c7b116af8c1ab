// For the tests of kernels only: the gradient of f = Σ dy·y(x) by two roads that share nothing with a backward pass.
#ifndef HEEDFUL_KERNELS_GRADIENT_SUPPORT_H_
#define HEEDFUL_KERNELS_GRADIENT_SUPPORT_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "heedful/core/dual.h"
#include "heedful/core/view.h"

namespace heedful::testing_support {

struct Slope {
  double value;
  double tolerance;
};

// ∂f/∂x[i] for every i with dual numbers: Jᵀ·dy column by column. forward maps std::vector<Dual> to
// std::vector<Dual>. `tolerance` is the rounding of a sum of products: (length + 16)·2⁻⁵³·Σ|dy·J|, with `scale`
// standing in for Σ|dy·J| where it is larger: the backward passes subtract terms of that size which the entries of J
// have subtracted already.
template <class Forward>
std::vector<Slope> dual_gradient(const Forward& forward, const std::vector<double>& x, const std::vector<double>& dy,
                                 double scale = 0) {
  std::vector<Slope> result;
  std::vector<Dual> duals(x.begin(), x.end());
  for (std::size_t i = 0; i < x.size(); ++i) {
    duals[i].slope = 1;
    const std::vector<Dual> y = forward(duals);
    duals[i].slope = 0;
    double sum = 0, absolute = 0;
    for (std::size_t j = 0; j < y.size(); ++j) {
      sum += dy[j] * y[j].slope;
      absolute += std::abs(dy[j] * y[j].slope);
    }
    result.push_back({sum, (static_cast<double>(x.size() + y.size()) + 16) * 0x1p-53 * std::max(absolute, scale)});
  }
  return result;
}

// The same by central differences of the kernel's own forward pass, with steps h and h/2. The error of the second is
// a third of their distance (the h² term) plus the rounding of f, (length + 16)·2⁻⁵³·Σ|dy·y|, over h.
template <class Forward>
std::vector<Slope> difference_gradient(const Forward& forward, std::vector<double> x, const std::vector<double>& dy,
                                       double step = 1e-4) {
  std::vector<Slope> result;
  double absolute = 0;
  const auto f = [&] {
    const std::vector<double> y = forward(x);
    double sum = 0;
    absolute = 0;
    for (std::size_t j = 0; j < y.size(); ++j) {
      sum += dy[j] * y[j];
      absolute += std::abs(dy[j] * y[j]);
    }
    return sum;
  };
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double middle = x[i];
    const auto slope = [&](double h) {
      x[i] = middle + h;
      const double above = f();
      x[i] = middle - h;
      const double below = f();
      x[i] = middle;
      return (above - below) / (2 * h);
    };
    const double coarse = slope(step), fine = slope(step / 2);
    const double rounding = (static_cast<double>(dy.size()) + 16) * 0x1p-53 * absolute / (step / 2);
    result.push_back({fine, std::abs(coarse - fine) + rounding});
  }
  return result;
}

template <class Gradient>
void expect_gradient(const Gradient& gradient, const std::vector<Slope>& expected, const char* name) {
  ASSERT_EQ(static_cast<std::size_t>(gradient.size()), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(gradient.data()[i], expected[i].value, expected[i].tolerance) << name << "[" << i << "]";
  }
}

}  // namespace heedful::testing_support

#endif  // HEEDFUL_KERNELS_GRADIENT_SUPPORT_H_
