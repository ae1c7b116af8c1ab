#include "heedful/inspection/attention_map.h"

#include "heedful/decoder/self_attention.h"

namespace heedful {

template <class T>
std::vector<Tensor<T, 4>> attention_maps(const Context& context, const Decoder<T>& decoder,
                                         View<const Index, 2> tokens) {
  Activations<T> activations;
  decoder_forward<T>(context, activations, decoder, tokens);
  const DecoderConfig& config = decoder.config;
  const Index batch = tokens.extent(0), length = tokens.extent(1);
  const AttentionOptions<T> options = attention_options(BlockRows<T>{config, activations.positions, {}, batch});
  std::vector<Tensor<T, 4>> maps;
  for (auto& block : activations.blocks) {
    maps.emplace_back(Extents<4>{batch, config.heads, length, length});
    const AttentionInputs<T> inputs{split_heads(block.q.view(), batch, config.heads),
                                    split_heads(block.k.view(), batch, config.kv_heads),
                                    split_heads(block.v.view(), batch, config.kv_heads)};
    AttentionOutputs<T> outputs;
    outputs.out = split_heads(block.heads.view(), batch, config.heads);
    outputs.weights = maps.back();
    attention_forward(context, outputs, inputs, options);
  }
  return maps;
}

template <class T>
std::vector<Pointer> pointer_table(const std::vector<Tensor<T, 4>>& maps, Index b, Index begin) {
  std::vector<Pointer> table;
  for (std::size_t layer = 0; layer < maps.size(); ++layer) {
    const Tensor<T, 4>& map = maps[layer];
    for (Index head = 0; head < map.extent(1); ++head) {
      Pointer pointer{static_cast<Index>(layer), head, {}, std::nullopt, 0};
      bool constant = true;
      for (Index i = begin; i < map.extent(2); ++i) {
        Index heaviest = 0;
        for (Index j = 1; j < map.extent(3); ++j) {
          if (map(b, head, i, j) > map(b, head, i, heaviest)) heaviest = j;
        }
        if (!pointer.keys.empty() && heaviest - i != pointer.keys.front() - begin) constant = false;
        pointer.keys.push_back(heaviest);
        pointer.mean_weight += static_cast<double>(map(b, head, i, heaviest));
      }
      if (pointer.keys.empty()) continue;
      if (constant) pointer.offset = pointer.keys.front() - begin;
      pointer.mean_weight /= static_cast<double>(pointer.keys.size());
      table.push_back(std::move(pointer));
    }
  }
  return table;
}

#define HEEDFUL_INSTANTIATE(T)                                                                                   \
  template std::vector<Tensor<T, 4>> attention_maps<T>(const Context&, const Decoder<T>&, View<const Index, 2>); \
  template std::vector<Pointer> pointer_table<T>(const std::vector<Tensor<T, 4>>&, Index, Index);
HEEDFUL_INSTANTIATE(float)
HEEDFUL_INSTANTIATE(double)
#undef HEEDFUL_INSTANTIATE

}  // namespace heedful
