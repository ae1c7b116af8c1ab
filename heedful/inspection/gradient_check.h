// Are the hand-written derivatives right? Two independent answers.
//
// Finite differences. For each coordinate θ the analytic gradient g is held against
//     n = (L(θ + ε) − L(θ − ε)) / 2ε,      deviation = |n − g| / max(|n|, |g|)
// with three kinds of coordinate told apart:
//     checked   the deviation counts
//     kink      a ReLU input changed sign between θ − ε and θ + ε: the difference then straddles a corner and is no
//               derivative. Found by looking at the signs, and counted.
//     skipped   the gradient is too small for ε: rounding of L alone moves n by about `noise` = 4·u·max(L, 1)/ε, so
//               below noise/tolerance a relative deviation says nothing. Compared absolutely instead.
//
// Forward mode. The loss in dual numbers (core/dual.h) gives the derivative along a direction v without any ε; it must
// equal g·v. One random direction for each parameter tensor, so that a deviation names its tensor.
#ifndef HEEDFUL_INSPECTION_GRADIENT_CHECK_H_
#define HEEDFUL_INSPECTION_GRADIENT_CHECK_H_

#include <cstdint>
#include <functional>
#include <string>

#include "heedful/core/context.h"
#include "heedful/decoder/loss.h"

namespace heedful {

struct GradientCheckOptions {
  double epsilon = 1e-6;
  double tolerance = 1e-4;  // on the deviation of a checked coordinate
  Index coordinates = 0;    // how many to draw; 0: all
  std::uint64_t seed = 0;   // of the draw, and of the forward-mode directions
};

struct GradientCheck {
  Index checked = 0, skipped = 0, kinks = 0;
  double max_relative_deviation = 0;  // over the checked
  std::string worst;                  // where: "block.0.attention.query.weight[3, 7]"
  double max_kink_deviation = 0;      // over the kinks: what was kept out of the verdict
  Index small_failures = 0;           // skipped coordinates that are off by more than rounding explains
  double forward_mode_deviation = 0;  // |g·v − dL/dv| / (‖g‖·‖v‖), the largest over the tensors
  std::string forward_mode_worst;     // the tensor
  bool passed = false;
};

// Both sides sum a few thousand products of relative error u = 1.1e-16; measured against ‖g‖·‖v‖ that is below 1e-12.
inline constexpr double kForwardModeTolerance = 1e-11;

// Called now and then with the number of coordinates done.
using CheckProgress = std::function<void(Index done, Index total)>;

// Checks the gradients of the decoder's loss on `batch`. It passes when something was checked, no checked coordinate
// deviates by more than the tolerance, no skipped one by more than rounding, and the forward mode agrees.
GradientCheck check_gradients(const Context& context, const Decoder<double>& decoder, const Batch<double>& batch,
                              const GradientCheckOptions& options, const CheckProgress& progress = {});

// The same for gradients [parameter_count] that came from elsewhere.
GradientCheck check_given_gradients(const Context& context, View<const double, 1> gradients,
                                    const Decoder<double>& decoder, const Batch<double>& batch,
                                    const GradientCheckOptions& options, const CheckProgress& progress = {});

}  // namespace heedful

#endif  // HEEDFUL_INSPECTION_GRADIENT_CHECK_H_
