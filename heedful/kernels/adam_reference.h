// adam.h by its formulas, in double: the yardstick of adam.cc.
#ifndef HEEDFUL_KERNELS_ADAM_REFERENCE_H_
#define HEEDFUL_KERNELS_ADAM_REFERENCE_H_

#include <cmath>

#include "heedful/kernels/adam.h"

namespace heedful {

inline void adam_reference(View<double, 1> parameters, const AdamMoments<double>& moments, In<double, 1> gradient,
                           Index step, const AdamOptions& options) {
  const double t = static_cast<double>(step);
  for (Index i = 0; i < parameters.extent(0); ++i) {
    double &p = parameters[i], &m = moments.first[i], &v = moments.second[i];
    const double g = gradient[i];
    p -= options.learning_rate * options.weight_decay * p;
    m *= options.beta1;
    m += (1 - options.beta1) * g;
    v *= options.beta2;
    v += (1 - options.beta2) * (g * g);
    p -= options.learning_rate * (m / (1 - std::pow(options.beta1, t))) /
         (std::sqrt(v / (1 - std::pow(options.beta2, t))) + options.epsilon);
  }
}

}  // namespace heedful

#endif  // HEEDFUL_KERNELS_ADAM_REFERENCE_H_
