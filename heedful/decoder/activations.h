// What one forward pass leaves behind for its backward pass, and the backward pass's own memory. Sized once for a batch
// shape; using the same shape again allocates nothing.
//
// N = B·T rows go in. Where only the last n ≤ T positions of every sequence are wanted, the last block's queries and
// all that follows them have R = B·n rows; its keys and values, and every other block, have N.
#ifndef HEEDFUL_DECODER_ACTIVATIONS_H_
#define HEEDFUL_DECODER_ACTIVATIONS_H_

#include <optional>
#include <vector>

#include "heedful/attention/rotary.h"
#include "heedful/core/tensor.h"
#include "heedful/decoder/config.h"
#include "heedful/decoder/parameters.h"

namespace heedful {

// A decoder's weights on a buffer, bound anew only where that is another buffer.
template <class T>
class Binding {
 public:
  const DecoderWeights<T>& on(const DecoderConfig& config, T* buffer) {
    if (buffer != buffer_) weights_ = bind_weights<T>(config, buffer);
    buffer_ = buffer;
    return weights_;
  }

 private:
  DecoderWeights<T> weights_;
  T* buffer_ = nullptr;
};

template <class T>
struct NormActivations {
  Norm kind = Norm::layer;
  Tensor<T, 2> output;      // [N, C]
  Tensor<T, 2> normalized;  // [N, C]
  Tensor<T, 1> inverse;     // [N] 1 / deviation
};

template <class T>
struct BlockActivations {
  NormActivations<T> attention_norm;  // of N rows before attention, of R behind it
  Tensor<T, 2> query_input;           // [R, C] what q is made of, where that is not all rows; else empty
  Tensor<T, 2> q;                     // [R, H·D], turned where the position is rotary
  Tensor<T, 2> k, v;                  // [N, G·D]
  Tensor<T, 3> row_max, row_sum;      // [B, H, n]
  Tensor<T, 2> heads;                 // [R, H·D] the heads' outputs side by side
  Tensor<T, 2> middle;                // [R, C] input + attention
  NormActivations<T> feed_forward_norm;
  Tensor<T, 2> gate, up;  // [R, F] before the activation; gate where gated
  Tensor<T, 2> hidden;    // [R, F] after it
  Tensor<T, 2> output;    // [R, C]
};

// Gradients of activations, alive for one block at a time.
template <class T>
struct BackwardRoom {
  View<T, 2> dx, dbranch, dnorm;   // [R, C]
  View<T, 2> dq, dheads;           // [R, H·D]
  View<T, 2> dk, dv;               // [N, G·D]
  View<T, 2> dhidden, dup, dgate;  // [R, F]
  View<T, 2> dlogits;              // [R, V]
};

// What a config's positions need, for every position of its context; empty where it needs nothing.
template <class T>
struct PositionTables {
  std::optional<RotaryTable<T>> rotary;
  Tensor<T, 2> sinusoidal;         // [context, C]
  Tensor<double, 1> alibi_slopes;  // [H]
  Tensor<Index, 2> numbers;        // [1, context] 0, 1, …: always there
};

template <class T>
struct Activations {
  DecoderConfig config;
  Index batch = 0, length = 0, wanted = 0;  // B, T, n
  PositionTables<T> positions;
  Binding<const T> weights;
  Binding<T> gradients;
  Tensor<T, 2> embedded;  // [N, C]
  std::vector<BlockActivations<T>> blocks;
  NormActivations<T> final_norm;
  Tensor<T, 2> logits;         // [R, V]
  Tensor<Index, 1> targets;    // [R] and
  Tensor<T, 1> loss_weights;   // [R]: the batch's, of the positions wanted
  BackwardRoom<T> memory;      // all of N rows
  Tensor<T, 1> memory_buffer;  // what it lies on

  // Makes room for a forward pass, and for the backward pass after it; does nothing where the room is there already.
  void prepare(const DecoderConfig& config, Index batch, Index length, Index wanted);
  void prepare_backward();
  // The backward memory, seen as R rows at a time.
  BackwardRoom<T> room(Index rows) const;
};

}  // namespace heedful

#endif  // HEEDFUL_DECODER_ACTIVATIONS_H_
