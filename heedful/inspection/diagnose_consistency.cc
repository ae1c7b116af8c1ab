#include "heedful/inspection/diagnose_consistency.h"

#include <algorithm>
#include <cmath>

#include "heedful/core/random.h"

namespace heedful::diagnosis {
namespace {

constexpr int kDirections = 8;
constexpr double kStep = 1e-3, kDifferenceError = 1e-9;

// Signs for every finite number of x, 0 where it is hidden and not finite.
Tensor<double, 4> direction(Random& random, const Tensor<double, 4>& x) {
  Tensor<double, 4> result(x.extents());
  for (Index at = 0; at < x.size(); ++at) {
    if (std::isfinite(x.data()[at])) result.data()[at] = random.uniform() < 0.5 ? -1 : 1;
  }
  return result;
}

double inner(const Tensor<double, 4>& a, const Tensor<double, 4>& b) {
  double sum = 0;
  for (Index at = 0; at < a.size(); ++at) sum += a.data()[at] * b.data()[at];
  return sum;
}

double squared_sum(const Tensor<double, 2>& errors, const Tensor<double, 4>& x) {
  double sum = 0;
  for (const double error : errors) sum += error * error;
  return sum * static_cast<double>(x.extent(2) * x.extent(3));
}

struct Direction {
  Tensor<double, 4> q, k, v;
};

double objective(const AttentionCase& given, const Recipe& recipe, const Direction& along, double t) {
  AttentionCase moved = given.copy();
  const auto move = [t](Tensor<double, 4>& x, const Tensor<double, 4>& by) {
    for (Index at = 0; at < x.size(); ++at) x.data()[at] += t * by.data()[at];
  };
  move(moved.q, along.q);
  move(moved.k, along.k);
  move(moved.v, along.v);
  return inner(walk(moved, recipe).out, given.dout);
}

}  // namespace

double gradient_disagreement(const Evidence& evidence, const Hypothesis& forward) {
  double worst = 0;
  Random random(1);
  for (std::size_t at = 0; at < evidence.observations().size(); ++at) {
    const auto& [given, answer] = evidence.observations()[at];
    if (!given.has_gradients() || !is_given(answer.dq) || !is_given(answer.dk) || !is_given(answer.dv)) continue;
    const Recipe recipe = forward.recipe(given.declared);
    const GradientWalk errors = walk_back(evidence.correct(at));
    const double rounding = std::sqrt(squared_sum(errors.dq_error, given.q) + squared_sum(errors.dk_error, given.k) +
                                      squared_sum(errors.dv_error, given.v));
    for (int round = 0; round < kDirections; ++round) {
      const Direction along{direction(random, given.q), direction(random, given.k), direction(random, given.v)};
      const double claimed = inner(answer.dq, along.q) + inner(answer.dk, along.k) + inner(answer.dv, along.v);
      const auto at_step = [&](double t) { return objective(given, recipe, along, t); };
      const double near = at_step(kStep) - at_step(-kStep), far = at_step(2 * kStep) - at_step(-2 * kStep);
      const double slope = (8 * near - far) / (12 * kStep);
      if (!std::isfinite(slope)) break;  // an output that is NaN by mistake has no gradient to disagree with
      const double error = rounding + kDifferenceError * (std::abs(slope) + 1);
      const double distance = std::abs(claimed - slope) / error;
      worst = std::max(worst, std::isfinite(distance) ? distance : HUGE_VAL);
    }
  }
  return worst;
}

}  // namespace heedful::diagnosis
