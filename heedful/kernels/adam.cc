#include "heedful/kernels/adam.h"

#include <cmath>

#include "heedful/kernels/rows.h"

namespace heedful {
namespace {

void require_options(Index step, const AdamOptions& options) {
  require(step >= 1, "adam", "step: expected at least 1, got {}", step);
  const auto require_finite = [](const char* name, double value) {
    require(std::isfinite(value) && value >= 0, "adam", "{}: expected a finite number of at least 0, got {}", name,
            value);
  };
  require_finite("learning_rate", options.learning_rate);
  require_finite("epsilon", options.epsilon);
  require_finite("weight_decay", options.weight_decay);
  require(0 <= options.beta1 && options.beta1 < 1, "adam", "beta1: expected 0 ≤ β < 1, got {}", options.beta1);
  require(0 <= options.beta2 && options.beta2 < 1, "adam", "beta2: expected 0 ≤ β < 1, got {}", options.beta2);
}

}  // namespace

template <class T>
void adam_step(const Context& context, View<T, 1> parameters, const AdamMoments<std::type_identity_t<T>>& moments,
               In<T, 1> gradient, Index step, const AdamOptions& options) {
  require_options(step, options);
  internal::require_same_shape("adam", "first moment", moments.first, parameters);
  internal::require_same_shape("adam", "second moment", moments.second, parameters);
  internal::require_same_shape("adam", "gradient", gradient, parameters);

  const double first_correction = 1 - std::pow(options.beta1, static_cast<double>(step));
  const double second_correction = 1 - std::pow(options.beta2, static_cast<double>(step));
  const double shrink = options.learning_rate * options.weight_decay;
  const auto range = [&](auto contiguous, Index begin, Index end) {
    const auto p = internal::row(contiguous, parameters);
    const auto g = internal::row(contiguous, gradient);
    const auto first = internal::row(contiguous, moments.first);
    const auto second = internal::row(contiguous, moments.second);
    for (Index i = begin; i < end; ++i) {
      const double slope = g[i];
      const double m = options.beta1 * first[i] + (1 - options.beta1) * slope;
      const double v = options.beta2 * second[i] + (1 - options.beta2) * (slope * slope);
      const double before = p[i] - shrink * p[i];
      first[i] = static_cast<T>(m);
      second[i] = static_cast<T>(v);
      p[i] = static_cast<T>(before - options.learning_rate * (m / first_correction) /
                                         (std::sqrt(v / second_correction) + options.epsilon));
    }
  };
  internal::for_rows(context, parameters.extent(0), 1, [&](Index begin, Index end) {
    internal::when_contiguous([&](auto contiguous) { range(contiguous, begin, end); }, parameters.stride(0),
                              gradient.stride(0), moments.first.stride(0), moments.second.stride(0));
  });
}

#define HEEDFUL_INSTANTIATE(T) \
  template void adam_step<T>(const Context&, View<T, 1>, const AdamMoments<T>&, In<T, 1>, Index, const AdamOptions&);
HEEDFUL_INSTANTIATE(float)
HEEDFUL_INSTANTIATE(double)
#undef HEEDFUL_INSTANTIATE

}  // namespace heedful
