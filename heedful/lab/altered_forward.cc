#include "heedful/lab/altered_forward.h"

#include <numeric>

#include "heedful/core/error.h"
#include "heedful/decoder/feed_forward.h"
#include "heedful/decoder/norm.h"
#include "heedful/decoder/self_attention.h"
#include "heedful/kernels/linear.h"

namespace heedful {
namespace {

template <class T>
void add(Tensor<T, 2>& sum, View<const T, 2> x) {
  for (Index i = 0; i < sum.size(); ++i) sum.data()[i] += x.data()[i];
}

// What pre-norm blocks do (decoder/block.cc), with the heads computed a second time under the altered options.
template <class T>
void altered_block(const Context& context, BlockActivations<T>& a, View<const T, 2> x,
                   const BlockWeights<const T>& weights, const BlockRows<T>& rows, const AlterAttention<T>& alter) {
  const DecoderConfig& config = rows.config;
  norm_forward<T>(context, a.attention_norm, x, weights.attention_norm, config);
  self_attention_forward<T>(context, a.middle.view(), a, a.attention_norm.output, weights, rows);
  AttentionOptions<T> options = attention_options(rows);
  alter(options, rows.layer);
  AttentionOutputs<T> outputs;
  outputs.out = split_heads(a.heads.view(), rows.batch, config.heads);
  const AttentionInputs<T> inputs{split_heads(a.q.view(), rows.batch, config.heads),
                                  split_heads(a.k.view(), rows.batch, config.kv_heads),
                                  split_heads(a.v.view(), rows.batch, config.kv_heads)};
  attention_forward(context, outputs, inputs, options);
  linear_forward<T>(context, a.middle.view(), a.heads, weights.output.weight, weights.output.bias);
  add<T>(a.middle, x);
  norm_forward<T>(context, a.feed_forward_norm, a.middle, weights.feed_forward_norm, config);
  feed_forward_forward<T>(context, a.output.view(), a, a.feed_forward_norm.output, weights, config);
  add<T>(a.output, a.middle);
}

}  // namespace

template <class T>
View<const T, 3> altered_forward(const Context& context, Activations<T>& activations, const Decoder<T>& decoder,
                                 View<const Index, 2> tokens, const AlterAttention<T>& alter) {
  const DecoderConfig& config = decoder.config;
  require(config.norm_placement == NormPlacement::pre, "altered forward", "norm placement: expected pre, got post");
  decoder_forward<T>(context, activations, decoder, tokens);  // leaves the embedded tokens, and refuses bad ones
  const Index batch = tokens.extent(0), length = tokens.extent(1);
  Tensor<Index, 2> positions({1, length});
  std::iota(positions.begin(), positions.end(), Index{0});
  const DecoderWeights<const T> weights = decoder.weights();
  View<const T, 2> x = activations.embedded;
  for (Index layer = 0; layer < config.layers; ++layer) {
    const auto at = static_cast<std::size_t>(layer);
    const BlockRows<T> rows{config, activations.positions, positions, batch, nullptr, layer};
    altered_block<T>(context, activations.blocks[at], x, weights.blocks[at], rows, alter);
    x = activations.blocks[at].output;
  }
  norm_forward<T>(context, activations.final_norm, x, weights.final_norm, config);
  linear_forward<T>(context, activations.logits, activations.final_norm.output, weights.unembedding.weight,
                    weights.unembedding.bias);
  return View<const T, 3>(activations.logits.data(), {batch, length, config.vocabulary});
}

template View<const float, 3> altered_forward<float>(const Context&, Activations<float>&, const Decoder<float>&,
                                                     View<const Index, 2>, const AlterAttention<float>&);
template View<const double, 3> altered_forward<double>(const Context&, Activations<double>&, const Decoder<double>&,
                                                       View<const Index, 2>, const AlterAttention<double>&);

}  // namespace heedful
