#include "heedful/decoder/decoder.h"

#include <span>

#include "heedful/core/error.h"
#include "heedful/decoder/block.h"
#include "heedful/decoder/norm.h"
#include "heedful/kernels/embedding.h"
#include "heedful/kernels/linear.h"

namespace heedful {
namespace {

template <class T>
Index cached_length(const KvCache<T>* cache) {
  return cache == nullptr ? 0 : cache->length(0);
}

std::span<const Index> flat(View<const Index, 2> tokens) {
  return {tokens.data(), static_cast<std::size_t>(tokens.size())};
}

template <class T>
void check_tokens(View<const Index, 2> tokens, const DecoderConfig& config, const KvCache<T>* cache) {
  const Index batch = tokens.extent(0), length = tokens.extent(1);
  require(batch >= 1 && length >= 1, "decoder", "tokens: expected at least one, got {}",
          shape_text(tokens.extents()));
  require(tokens.is_contiguous(), "decoder", "tokens: expected contiguous rows");
  const Index start = cached_length(cache);
  require(start + length <= config.context, "decoder", "tokens: expected at most {} positions, got {}",
          config.context, start + length);
}

// Adds the row of `table` [context, C] that belongs to each row's position.
template <class T>
void add_positions(View<T, 2> x, View<const T, 2> table, Index start, Index length) {
  for (Index row = 0; row < x.extent(0); ++row) {
    const T* position = &table(start + row % length, 0);
    for (Index c = 0; c < x.extent(1); ++c) x(row, c) += position[c];
  }
}

}  // namespace

template <class T>
View<const T, 3> decoder_forward(const Context& context, Activations<T>& activations, const Decoder<T>& decoder,
                                 View<const Index, 2> tokens, KvCache<T>* cache, Index wanted) {
  const DecoderConfig& config = decoder.config;
  check_tokens(tokens, config, cache);
  require(0 <= wanted && wanted <= tokens.extent(1), "decoder", "wanted: expected 0 to {} positions, got {}",
          tokens.extent(1), wanted);
  const Index batch = tokens.extent(0), length = tokens.extent(1);
  const Index start = cached_length(cache);
  activations.prepare(config, batch, length, wanted == 0 ? length : wanted);
  const DecoderWeights<const T>& weights = activations.weights.on(config, decoder.parameters.data());
  const View<const Index, 2> positions = activations.positions.numbers.view().slice(1, start, start + length);

  embedding_forward<T>(context, activations.embedded.view(), weights.token_embedding, flat(tokens));
  if (config.position == Position::learned) {
    add_positions<T>(activations.embedded.view(), weights.position_embedding, start, length);
  } else if (config.position == Position::sinusoidal) {
    add_positions<T>(activations.embedded.view(), activations.positions.sinusoidal, start, length);
  }
  View<const T, 2> x = activations.embedded;
  for (Index layer = 0; layer < config.layers; ++layer) {
    const auto at = static_cast<std::size_t>(layer);
    const BlockRows<T> rows{config, activations.positions, positions, batch, cache, layer};
    block_forward<T>(context, activations.blocks[at], x, weights.blocks[at], rows);
    x = block_output(activations.blocks[at], config);
  }
  norm_forward<T>(context, activations.final_norm, x, weights.final_norm, config);
  linear_forward<T>(context, activations.logits, activations.final_norm.output, weights.unembedding.weight,
                    weights.unembedding.bias);
  return View<const T, 3>(activations.logits.data(), {batch, activations.wanted, config.vocabulary});
}

template <class T>
void decoder_backward(const Context& context, View<T, 1> gradients, Activations<T>& activations, In<T, 3> dlogits,
                      const Decoder<T>& decoder, View<const Index, 2> tokens) {
  const DecoderConfig& config = decoder.config;
  const Index batch = activations.batch, length = activations.length;
  const DecoderWeights<const T>& weights = activations.weights.on(config, decoder.parameters.data());
  const DecoderWeights<T>& out = activations.gradients.on(config, gradients.data());
  const View<const Index, 2> positions = activations.positions.numbers.view().slice(1, 0, length);
  activations.prepare_backward();
  const Index rows = batch * activations.wanted;
  const BackwardRoom<T> room = activations.room(rows);

  const View<const T, 2> dlogit_rows(dlogits.data(), {rows, config.vocabulary});
  linear_backward<T>(context, {room.dnorm, out.unembedding.weight, out.unembedding.bias}, dlogit_rows,
                     activations.final_norm.output, weights.unembedding.weight);
  norm_backward<T>(context, room.dx, out.final_norm, room.dnorm, activations.final_norm, weights.final_norm);
  for (Index layer = config.layers - 1; layer >= 0; --layer) {
    const auto at = static_cast<std::size_t>(layer);
    const View<const T, 2> x =
        layer == 0 ? activations.embedded.view() : block_output(activations.blocks[at - 1], config);
    const BlockRows<T> block_rows{config, activations.positions, positions, batch};
    block_backward<T>(context, activations, out.blocks[at], {x, activations.blocks[at], block_rows},
                      weights.blocks[at]);
  }
  const View<const T, 2> dx = activations.memory.dx;  // [B·T, C]
  embedding_backward<T>(context, out.token_embedding, dx, flat(tokens));
  if (config.position == Position::learned) {
    for (Index row = 0; row < batch * length; ++row) {
      for (Index c = 0; c < config.width; ++c) out.position_embedding(row % length, c) += dx(row, c);
    }
  }
}

#define HEEDFUL_INSTANTIATE(T)                                                                                \
  template View<const T, 3> decoder_forward<T>(const Context&, Activations<T>&, const Decoder<T>&,            \
                                               View<const Index, 2>, KvCache<T>*, Index);                     \
  template void decoder_backward<T>(const Context&, View<T, 1>, Activations<T>&, In<T, 3>, const Decoder<T>&, \
                                    View<const Index, 2>);
HEEDFUL_INSTANTIATE(float)
HEEDFUL_INSTANTIATE(double)
#undef HEEDFUL_INSTANTIATE

}  // namespace heedful
