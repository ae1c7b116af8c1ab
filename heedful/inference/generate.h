// Continues sequences one token at a time, each token chosen from the logits after the last.
//
// With the cache each step computes one new row; without it the whole sequence again. Tokens and logits have the same
// bits either way: the cache changes the cost, not the result.
#ifndef HEEDFUL_INFERENCE_GENERATE_H_
#define HEEDFUL_INFERENCE_GENERATE_H_

#include "heedful/core/context.h"
#include "heedful/core/tensor.h"
#include "heedful/decoder/decoder.h"
#include "heedful/inference/sampler.h"

namespace heedful {

struct GenerateOptions {
  Index tokens = 1;  // how many to add
  bool cache = true;
  CacheType cache_type = CacheType::full;  // in bf16 the cache does change the result, within its rounding
  // Go on past the context: each further token then comes from the last `context` tokens alone, computed afresh.
  bool slide = false;
  SamplerOptions sampler;
};

template <class T>
struct Generation {
  Tensor<Index, 2> tokens;  // [B, n] the added ones
  Tensor<T, 3> logits;      // [B, n, V] from which each was chosen
};

// prompts [B, P], P ≥ 1. Throws Error where prompt and answer do not fit the decoder's context together
// and may not slide.
template <class T>
Generation<T> generate(const Context& context, const Decoder<T>& decoder, View<const Index, 2> prompts,
                       const GenerateOptions& options);

}  // namespace heedful

#endif  // HEEDFUL_INFERENCE_GENERATE_H_
