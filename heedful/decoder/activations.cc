#include "heedful/decoder/activations.h"

#include "heedful/attention/position.h"

namespace heedful {
namespace {

template <class T>
void size_norm(NormActivations<T>& norm, const DecoderConfig& config, Index rows) {
  const Index width = config.width;
  norm.kind = config.norm;
  norm.output = Tensor<T, 2>({rows, width});
  norm.normalized = Tensor<T, 2>({rows, width});
  norm.inverse = Tensor<T, 1>({rows});
}

template <class T>
PositionTables<T> position_tables(const DecoderConfig& config) {
  PositionTables<T> tables;
  switch (config.position) {
    case Position::rotary:
      tables.rotary.emplace(config.context, config.head_width(), config.rotary_base);
      break;
    case Position::sinusoidal:
      tables.sinusoidal = Tensor<T, 2>({config.context, config.width});
      sinusoidal_positions(tables.sinusoidal.view());
      break;
    case Position::alibi:
      tables.alibi_slopes = alibi_slopes(config.heads);
      break;
    case Position::learned:
    case Position::none:
      break;
  }
  return tables;
}

}  // namespace

template <class T>
void Activations<T>::prepare(const DecoderConfig& new_config, Index new_batch, Index new_length) {
  if (embedded.data() == nullptr || config != new_config) {
    *this = {};
    config = new_config;
    positions = position_tables<T>(config);
  } else if (batch == new_batch && length == new_length) {
    return;
  }
  batch = new_batch;
  length = new_length;
  room = {};
  const Index rows = batch * length, width = config.width, kv = config.key_width(), inner = config.feed_forward;
  embedded = Tensor<T, 2>({rows, width});
  blocks.clear();
  blocks.resize(static_cast<std::size_t>(config.layers));
  for (auto& block : blocks) {
    size_norm(block.attention_norm, config, rows);
    block.q = Tensor<T, 2>({rows, width});
    block.k = Tensor<T, 2>({rows, kv});
    block.v = Tensor<T, 2>({rows, kv});
    block.row_max = Tensor<T, 3>({batch, config.heads, length});
    block.row_sum = Tensor<T, 3>({batch, config.heads, length});
    block.heads = Tensor<T, 2>({rows, width});
    block.middle = Tensor<T, 2>({rows, width});
    size_norm(block.feed_forward_norm, config, rows);
    if (config.gated()) block.gate = Tensor<T, 2>({rows, inner});
    block.up = Tensor<T, 2>({rows, inner});
    block.hidden = Tensor<T, 2>({rows, inner});
    block.output = Tensor<T, 2>({rows, width});
  }
  size_norm(final_norm, config, rows);
  logits = Tensor<T, 2>({rows, config.vocabulary});
}

template <class T>
void Activations<T>::prepare_backward() {
  const Index rows = batch * length, width = config.width, kv = config.key_width(), inner = config.feed_forward;
  if (room.dx.data() != nullptr) return;
  for (auto* rows_by_width : {&room.dx, &room.dbranch, &room.dnorm, &room.dq, &room.dheads}) {
    *rows_by_width = Tensor<T, 2>({rows, width});
  }
  for (auto* keys : {&room.dk, &room.dv}) *keys = Tensor<T, 2>({rows, kv});
  for (auto* wide : {&room.dhidden, &room.dup}) *wide = Tensor<T, 2>({rows, inner});
  room.dlogits = Tensor<T, 2>({rows, config.vocabulary});
  if (config.gated()) room.dgate = Tensor<T, 2>({rows, inner});
}

template struct Activations<float>;
template struct Activations<double>;

}  // namespace heedful
