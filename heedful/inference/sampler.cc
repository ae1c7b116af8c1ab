#include "heedful/inference/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "heedful/core/error.h"

namespace heedful {

void validate(const SamplerOptions& options) {
  require(std::isfinite(options.temperature) && options.temperature >= 0, "sampler",
          "temperature: expected 0 or more, got {}", options.temperature);
  require(options.top_k >= 0, "sampler", "top-k: expected 0 (all) or more, got {}", options.top_k);
  require(options.top_p > 0 && options.top_p <= 1, "sampler", "top-p: expected more than 0 and at most 1, got {}",
          options.top_p);
}

template <class T>
Index sample(View<const T, 1> logits, const SamplerOptions& options, Random& random) {
  const Index n = logits.extent(0);
  for (Index i = 0; i < n; ++i) require(!std::isnan(logits[i]), "sampler", "logit {} is NaN", i);
  std::vector<Index> order(static_cast<std::size_t>(n));  // from the largest logit down, equals in their order
  std::iota(order.begin(), order.end(), Index{0});
  if (options.temperature == 0) return *std::ranges::max_element(order, {}, [&](Index i) { return logits[i]; });

  std::ranges::stable_sort(order, std::ranges::greater(), [&](Index i) { return logits[i]; });
  if (options.top_k > 0 && options.top_k < n) order.resize(static_cast<std::size_t>(options.top_k));
  std::vector<double> weights;
  double total = 0;
  for (Index i : order) {
    weights.push_back(
        std::exp((static_cast<double>(logits[i]) - static_cast<double>(logits[order[0]])) / options.temperature));
    total += weights.back();
  }
  double kept = 0;
  std::size_t count = 0;
  do {
    kept += weights[count++];
  } while (count < weights.size() && kept < options.top_p * total);

  double left = random.uniform() * kept;
  for (std::size_t i = 0; i + 1 < count; ++i) {
    left -= weights[i];
    if (left < 0) return order[i];
  }
  return order[count - 1];
}

template Index sample<float>(View<const float, 1>, const SamplerOptions&, Random&);
template Index sample<double>(View<const double, 1>, const SamplerOptions&, Random&);

}  // namespace heedful
