#include "heedful/decoder/self_attention.h"

#include "heedful/attention/attention.h"
#include "heedful/attention/rotary.h"
#include "heedful/core/check.h"
#include "heedful/decoder/last_rows.h"
#include "heedful/kernels/linear.h"

namespace heedful {
namespace {

// Queries are the last of the new positions.
template <class T>
View<const Index, 2> query_positions(const BlockRows<T>& rows, View<T, 4> q) {
  const Index length = rows.positions.extent(1);
  return rows.positions.slice(1, length - q.extent(2), length);
}

}  // namespace

template <class T>
AttentionOptions<T> attention_options(const BlockRows<T>& rows) {
  AttentionOptions<T> options;
  if (!rows.config.scale) options.scale = 1;
  options.softcap = rows.config.softcap;
  options.window = rows.config.window;
  options.alibi_slopes = rows.tables.alibi_slopes;
  options.causal = true;
  options.alignment = Alignment::bottom_right;  // the last new position stands on the last key
  return options;
}

template <class T>
void self_attention_forward(const Context& context, View<T, 2> y, BlockActivations<T>& activations,
                            View<const T, 2> x, const BlockWeights<const T>& weights, const BlockRows<T>& rows,
                            View<const T, 2> residual) {
  const DecoderConfig& config = rows.config;
  const bool all = activations.query_input.data() == nullptr;
  if (!all) take_last<T>(activations.query_input, x, rows.batch);
  linear_forward<T>(context, activations.q, all ? x : activations.query_input, weights.query.weight,
                    weights.query.bias);
  linear_forward<T>(context, activations.k, x, weights.key.weight, weights.key.bias);
  linear_forward<T>(context, activations.v, x, weights.value.weight, weights.value.bias);
  const View<T, 4> q = split_heads(activations.q.view(), rows.batch, config.heads);     // [B, H, T, D]
  const View<T, 4> k = split_heads(activations.k.view(), rows.batch, config.kv_heads);  // [B, G, T, D]
  const View<T, 4> v = split_heads(activations.v.view(), rows.batch, config.kv_heads);  // [B, G, T, D]
  if (config.position == Position::rotary) {
    rotary_forward<T>(q, q, query_positions(rows, q), *rows.tables.rotary, config.rotary_layout);
    rotary_forward<T>(k, k, rows.positions, *rows.tables.rotary, config.rotary_layout);
  }

  AttentionInputs<T> inputs{q, k, v};
  if (rows.cache != nullptr) {
    rows.cache->append(rows.layer, rows.positions(0, 0), k, v);
    rows.cache->lend(inputs, rows.layer);
  }
  AttentionOutputs<T> outputs;
  outputs.out = split_heads(activations.heads.view(), rows.batch, config.heads);
  outputs.row_max = activations.row_max;
  outputs.row_sum = activations.row_sum;
  attention_forward(context, outputs, inputs, attention_options(rows));

  linear_forward<T>(context, y, activations.heads, weights.output.weight, weights.output.bias, residual);
}

template <class T>
void self_attention_backward(const Context& context, View<T, 2> dx, const BackwardRoom<T>& room,
                             const BlockWeights<T>& gradients, View<const T, 2> dy, const BlockSaved<T>& saved,
                             const BlockWeights<const T>& weights) {
  const auto& [x, activations, rows] = saved;
  const DecoderConfig& config = rows.config;
  HEEDFUL_CHECK(rows.cache == nullptr);
  linear_backward<T>(context, {room.dheads, gradients.output.weight, gradients.output.bias}, dy, activations.heads,
                     weights.output.weight);

  const auto heads = [&](View<const T, 2> tensor, Index count) { return split_heads(tensor, rows.batch, count); };
  AttentionGradients<T> out;
  out.dq = split_heads(room.dq, rows.batch, config.heads);
  out.dk = split_heads(room.dk, rows.batch, config.kv_heads);
  out.dv = split_heads(room.dv, rows.batch, config.kv_heads);
  const AttentionInputs<T> inputs{heads(activations.q, config.heads), heads(activations.k, config.kv_heads),
                                  heads(activations.v, config.kv_heads)};
  const AttentionSaved<T> statistics{heads(activations.heads, config.heads), activations.row_max,
                                     activations.row_sum};
  attention_backward<T>(context, out, heads(room.dheads, config.heads), inputs, statistics, attention_options(rows));
  if (config.position == Position::rotary) {
    rotary_backward<T>(out.dq, out.dq, query_positions(rows, out.dq), *rows.tables.rotary, config.rotary_layout);
    rotary_backward<T>(out.dk, out.dk, rows.positions, *rows.tables.rotary, config.rotary_layout);
  }

  const bool all = activations.query_input.data() == nullptr;
  linear_backward<T>(context, {room.dnorm, gradients.query.weight, gradients.query.bias}, room.dq,
                     all ? x : activations.query_input, weights.query.weight);
  spread_last(dx, room.dnorm, rows.batch);
  linear_backward<T>(context, {dx, gradients.key.weight, gradients.key.bias, /*accumulate_dx=*/true}, room.dk, x,
                     weights.key.weight);
  linear_backward<T>(context, {dx, gradients.value.weight, gradients.value.bias, /*accumulate_dx=*/true}, room.dv, x,
                     weights.value.weight);
}

#define HEEDFUL_INSTANTIATE(T)                                                                                  \
  template AttentionOptions<T> attention_options<T>(const BlockRows<T>&);                                       \
  template void self_attention_forward<T>(const Context&, View<T, 2>, BlockActivations<T>&, View<const T, 2>,   \
                                          const BlockWeights<const T>&, const BlockRows<T>&, View<const T, 2>); \
  template void self_attention_backward<T>(const Context&, View<T, 2>, const BackwardRoom<T>&,                  \
                                           const BlockWeights<T>&, View<const T, 2>, const BlockSaved<T>&,      \
                                           const BlockWeights<const T>&);
HEEDFUL_INSTANTIATE(float)
HEEDFUL_INSTANTIATE(double)
#undef HEEDFUL_INSTANTIATE

}  // namespace heedful
