#include "heedful/training/schedule.h"

#include <cmath>
#include <numbers>

namespace heedful {

double learning_rate_at(const Schedule& schedule, double learning_rate, Index step) {
  const Index done = step - 1;
  if (done < schedule.warmup) {
    return learning_rate * static_cast<double>(step) / static_cast<double>(schedule.warmup + 1);
  }
  if (schedule.decay_steps == 0) return learning_rate;
  if (done >= schedule.decay_steps) return schedule.minimum_rate;
  const double progress =
      static_cast<double>(done - schedule.warmup) / static_cast<double>(schedule.decay_steps - schedule.warmup);
  return schedule.minimum_rate +
         0.5 * (learning_rate - schedule.minimum_rate) * (1 + std::cos(std::numbers::pi * progress));
}

}  // namespace heedful
