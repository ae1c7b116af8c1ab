// Chooses the next token from a row of logits.
//
//     temperature 0    the largest logit, the first of equals
//     otherwise        drawn from softmax(logits / temperature), kept to the top_k largest and then to the smallest
//                      set of largest probabilities that reaches top_p (Holtzman et al., arXiv:1904.09751)
#ifndef HEEDFUL_INFERENCE_SAMPLER_H_
#define HEEDFUL_INFERENCE_SAMPLER_H_

#include <cstdint>

#include "heedful/core/random.h"
#include "heedful/core/view.h"

namespace heedful {

struct SamplerOptions {
  double temperature = 0;
  Index top_k = 0;   // 0: all
  double top_p = 1;  // 1: all
  std::uint64_t seed = 0;
};

void validate(const SamplerOptions& options);  // throws Error

// One draw of `random` where the temperature is not 0. Throws Error where a logit is NaN.
template <class T>
Index sample(View<const T, 1> logits, const SamplerOptions& options, Random& random);

}  // namespace heedful

#endif  // HEEDFUL_INFERENCE_SAMPLER_H_
