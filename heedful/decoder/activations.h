// What one forward pass leaves behind for its backward pass, and the backward pass's own room. Sized once for a batch
// shape; using the same shape again allocates nothing. N = B·T rows.
#ifndef HEEDFUL_DECODER_ACTIVATIONS_H_
#define HEEDFUL_DECODER_ACTIVATIONS_H_

#include <optional>
#include <vector>

#include "heedful/attention/rotary.h"
#include "heedful/core/tensor.h"
#include "heedful/decoder/config.h"

namespace heedful {

template <class T>
struct NormActivations {
  Norm kind = Norm::layer;
  Tensor<T, 2> output;      // [N, C]
  Tensor<T, 2> normalized;  // [N, C]
  Tensor<T, 1> inverse;     // [N] 1 / deviation
};

template <class T>
struct BlockActivations {
  NormActivations<T> attention_norm;
  Tensor<T, 2> q;                 // [N, H·D], turned where the position is rotary
  Tensor<T, 2> k, v;              // [N, G·D]
  Tensor<T, 3> row_max, row_sum;  // [B, H, T]
  Tensor<T, 2> heads;             // [N, H·D] the heads' outputs side by side
  Tensor<T, 2> middle;            // [N, C] input + attention
  NormActivations<T> feed_forward_norm;
  Tensor<T, 2> gate, up;  // [N, F] before the activation; gate where gated
  Tensor<T, 2> hidden;    // [N, F] after it
  Tensor<T, 2> output;    // [N, C]
};

// The backward pass's room: gradients of activations, alive for one block at a time.
template <class T>
struct BackwardRoom {
  Tensor<T, 2> dx, dbranch, dnorm;   // [N, C]
  Tensor<T, 2> dq, dheads;           // [N, H·D]
  Tensor<T, 2> dk, dv;               // [N, G·D]
  Tensor<T, 2> dhidden, dup, dgate;  // [N, F]
  Tensor<T, 2> dlogits;              // [N, V]
};

// What a config's positions need, for every position of its context; empty where it needs nothing.
template <class T>
struct PositionTables {
  std::optional<RotaryTable<T>> rotary;
  Tensor<T, 2> sinusoidal;         // [context, C]
  Tensor<double, 1> alibi_slopes;  // [H]
};

template <class T>
struct Activations {
  DecoderConfig config;
  Index batch = 0, length = 0;  // B, T
  PositionTables<T> positions;
  Tensor<T, 2> embedded;  // [N, C]
  std::vector<BlockActivations<T>> blocks;
  NormActivations<T> final_norm;
  Tensor<T, 2> logits;  // [N, V]
  BackwardRoom<T> room;

  // Makes room for a forward pass, and for the backward pass after it; does nothing where the room is there already.
  void prepare(const DecoderConfig& config, Index batch, Index length);
  void prepare_backward();
};

}  // namespace heedful

#endif  // HEEDFUL_DECODER_ACTIVATIONS_H_
