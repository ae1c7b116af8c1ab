#include "heedful/inference/generate.h"

#include <algorithm>
#include <optional>

#include "heedful/core/error.h"

namespace heedful {
namespace {

// The first `length` columns of [B, capacity] as a contiguous [B, length].
Tensor<Index, 2> columns(const Tensor<Index, 2>& sequences, Index begin, Index end) {
  Tensor<Index, 2> result({sequences.extent(0), end - begin});
  for (Index b = 0; b < result.extent(0); ++b) {
    std::copy_n(sequences.data() + b * sequences.extent(1) + begin, end - begin, result.data() + b * (end - begin));
  }
  return result;
}

}  // namespace

template <class T>
Generation<T> generate(const Context& context, const Decoder<T>& decoder, View<const Index, 2> prompts,
                       const GenerateOptions& options) {
  const DecoderConfig& config = decoder.config;
  const Index batch = prompts.extent(0), prompt = prompts.extent(1), n = options.tokens;
  validate(options.sampler);
  require(batch >= 1 && prompt >= 1, "generate", "prompt: expected at least one token, got {}",
          shape_text(prompts.extents()));
  require(0 <= n && n <= 1 << 20, "generate", "tokens: expected 0 to {}, got {}", 1 << 20, n);
  const bool fits = n <= config.context && prompt <= config.context - std::max(n - 1, Index{0});
  require(fits || options.slide, "generate", "length: a prompt of {} and {} new tokens do not fit the context of {}",
          prompt, n, config.context);

  Tensor<Index, 2> sequences({batch, prompt + n});
  for (Index b = 0; b < batch; ++b) {
    for (Index t = 0; t < prompt; ++t) sequences(b, t) = prompts(b, t);
  }
  Generation<T> result{Tensor<Index, 2>({batch, n}), Tensor<T, 3>({batch, n, config.vocabulary})};
  Random random(options.sampler.seed);
  Activations<T> activations;
  std::optional<KvCache<T>> cache;
  if (options.cache) {
    const Index capacity = std::min(prompt + n, config.context + 1);
    cache.emplace(
        KvCacheShape{config.layers, batch, config.kv_heads, capacity, config.head_width(), config.head_width()},
        options.cache_type);
  }

  for (Index i = 0; i < n; ++i) {
    const Index end = prompt + i;
    if (end > config.context) cache.reset();
    const Index begin = cache ? (i == 0 ? 0 : end - 1) : std::max(end - config.context, Index{0});
    const Tensor<Index, 2> tokens = columns(sequences, begin, end);
    const View<const T, 3> logits =
        decoder_forward<T>(context, activations, decoder, tokens, cache ? &*cache : nullptr, 1);
    for (Index b = 0; b < batch; ++b) {
      const View<const T, 1> row = logits[b][0];
      std::copy_n(row.data(), config.vocabulary, &result.logits(b, i, 0));
      const Index token = sample<T>(row, options.sampler, random);
      result.tokens(b, i) = sequences(b, end) = token;
    }
  }
  return result;
}

template Generation<float> generate<float>(const Context&, const Decoder<float>&, View<const Index, 2>,
                                           const GenerateOptions&);
template Generation<double> generate<double>(const Context&, const Decoder<double>&, View<const Index, 2>,
                                             const GenerateOptions&);

}  // namespace heedful
