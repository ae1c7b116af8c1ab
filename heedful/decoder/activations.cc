#include "heedful/decoder/activations.h"

#include <numeric>
#include <vector>

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
  tables.numbers = Tensor<Index, 2>({1, config.context});
  std::iota(tables.numbers.begin(), tables.numbers.end(), Index{0});
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
void Activations<T>::prepare(const DecoderConfig& new_config, Index new_batch, Index new_length, Index new_wanted) {
  if (embedded.data() == nullptr || config != new_config) {
    *this = {};
    config = new_config;
    positions = position_tables<T>(config);
  } else if (batch == new_batch && length == new_length && wanted == new_wanted) {
    return;
  }
  batch = new_batch;
  length = new_length;
  wanted = new_wanted;
  memory = {};
  const Index all = batch * length, width = config.width, kv = config.key_width(), inner = config.feed_forward;
  embedded = Tensor<T, 2>({all, width});
  blocks.clear();
  blocks.resize(static_cast<std::size_t>(config.layers));
  for (auto& block : blocks) {
    const Index n = &block == &blocks.back() ? wanted : length, rows = batch * n;
    size_norm(block.attention_norm, config, config.norm_placement == NormPlacement::pre ? all : rows);
    if (rows != all) block.query_input = Tensor<T, 2>({rows, width});
    block.q = Tensor<T, 2>({rows, width});
    block.k = Tensor<T, 2>({all, kv});
    block.v = Tensor<T, 2>({all, kv});
    block.row_max = Tensor<T, 3>({batch, config.heads, n});
    block.row_sum = Tensor<T, 3>({batch, config.heads, n});
    block.heads = Tensor<T, 2>({rows, width});
    block.middle = Tensor<T, 2>({rows, width});
    size_norm(block.feed_forward_norm, config, rows);
    if (config.gated()) block.gate = Tensor<T, 2>({rows, inner});
    block.up = Tensor<T, 2>({rows, inner});
    block.hidden = Tensor<T, 2>({rows, inner});
    block.output = Tensor<T, 2>({rows, width});
  }
  size_norm(final_norm, config, batch * wanted);
  logits = Tensor<T, 2>({batch * wanted, config.vocabulary});
  targets = Tensor<Index, 1>({batch * wanted});
  loss_weights = Tensor<T, 1>({batch * wanted});
}

template <class T>
void Activations<T>::prepare_backward() {
  if (!memory.dx.empty()) return;
  const Index rows = batch * length, inner = config.feed_forward;
  struct Piece {
    View<T, 2>* view;
    Index columns;
  };
  std::vector<Piece> pieces;
  for (auto* view : {&memory.dx, &memory.dbranch, &memory.dnorm, &memory.dq, &memory.dheads}) {
    pieces.push_back({view, config.width});
  }
  for (auto* view : {&memory.dk, &memory.dv}) pieces.push_back({view, config.key_width()});
  for (auto* view : {&memory.dhidden, &memory.dup}) pieces.push_back({view, inner});
  if (config.gated()) pieces.push_back({&memory.dgate, inner});
  pieces.push_back({&memory.dlogits, config.vocabulary});
  constexpr Index kLine = static_cast<Index>(kTensorAlignment / sizeof(T));
  Index size = 0;
  for (const Piece& piece : pieces) size += (rows * piece.columns + kLine - 1) / kLine * kLine;
  if (memory_buffer.size() < size) memory_buffer = Tensor<T, 1>({size});
  T* next = memory_buffer.data();
  for (const Piece& piece : pieces) {
    *piece.view = View<T, 2>(next, {rows, piece.columns});
    next += (rows * piece.columns + kLine - 1) / kLine * kLine;
  }
}

template <class T>
BackwardRoom<T> Activations<T>::room(Index rows) const {
  BackwardRoom<T> result = memory;
  for (auto* view : {&result.dx, &result.dbranch, &result.dnorm, &result.dq, &result.dheads, &result.dhidden,
                     &result.dup, &result.dlogits}) {
    *view = view->slice(0, 0, rows);
  }
  if (config.gated()) result.dgate = result.dgate.slice(0, 0, rows);
  return result;
}

template struct Activations<float>;
template struct Activations<double>;

}  // namespace heedful
