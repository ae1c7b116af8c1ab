// The attention sub-layer of a block: project to queries, keys and values, turn them where the position is rotary,
// attend, project back.
//
//     q = x·query   k = x·key   v = x·value       [R, H·D], [N, G·D], [N, G·D]   seen as [B, heads, T, D] by strides
//     heads = attention(q, k, v)                  [R, H·D]   causal
//     y = heads·output + residual                 [R, C]
//
// R = N but in a last block of which not all positions are wanted (activations.h).
#ifndef HEEDFUL_DECODER_SELF_ATTENTION_H_
#define HEEDFUL_DECODER_SELF_ATTENTION_H_

#include "heedful/attention/attention.h"
#include "heedful/attention/kv_cache.h"
#include "heedful/core/context.h"
#include "heedful/decoder/activations.h"
#include "heedful/decoder/config.h"
#include "heedful/decoder/parameters.h"

namespace heedful {

// Which rows a sub-layer is called on: B sequences of T new positions each.
template <class T>
struct BlockRows {
  const DecoderConfig& config;
  const PositionTables<T>& tables;
  View<const Index, 2> positions;  // [1, T] absolute
  Index batch = 0;                 // B
  KvCache<T>* cache = nullptr;     // holds what came before; the new keys and values are appended to it
  Index layer = 0;                 // the cache's layer
};

// y [R, C] of x [N, C], plus a residual [R, C] if one is given; q, k, v, heads and the row statistics are kept in
// `activations`.
template <class T>
void self_attention_forward(const Context& context, View<T, 2> y, BlockActivations<T>& activations,
                            View<const T, 2> x, const BlockWeights<const T>& weights, const BlockRows<T>& rows,
                            View<const T, 2> residual = {});

template <class T>
struct BlockSaved {
  View<const T, 2> x;  // what the forward pass read
  const BlockActivations<T>& activations;
  const BlockRows<T>& rows;  // without a cache
};

// dx [N, C] for dy [R, C]; the weights' gradients are added to. dx begins where room.dnorm does.
template <class T>
void self_attention_backward(const Context& context, View<T, 2> dx, const BackwardRoom<T>& room,
                             const BlockWeights<T>& gradients, View<const T, 2> dy, const BlockSaved<T>& saved,
                             const BlockWeights<const T>& weights);

// The heads of rows [B·T, heads · D] as [B, heads, T, D]: strides only, no number moves.
template <class T>
View<T, 4> split_heads(View<T, 2> rows, Index batch, Index heads) {
  const Index length = rows.extent(0) / batch, width = rows.extent(1) / heads;
  return View<T, 4>(rows.data(), {batch, length, heads, width}, {length * rows.stride(0), rows.stride(0), width, 1})
      .permute({0, 2, 1, 3});
}

// What the config asks of attention; its views belong to `rows`.
template <class T>
AttentionOptions<T> attention_options(const BlockRows<T>& rows);

}  // namespace heedful

#endif  // HEEDFUL_DECODER_SELF_ATTENTION_H_
