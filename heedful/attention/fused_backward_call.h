// One call of the backward pass of fused attention, as every task reads it.
#ifndef HEEDFUL_ATTENTION_FUSED_BACKWARD_CALL_H_
#define HEEDFUL_ATTENTION_FUSED_BACKWARD_CALL_H_

#include <atomic>

#include "heedful/attention/fused_call.h"

namespace heedful {

// Queries, in strips, and keys whose P and dS are held at one time: both fit into the first cache.
inline constexpr Index kTileStrips = 4, kTileQueries = kTileStrips * kStripRows, kTileKeys = 64;
inline constexpr Index kPairStride = kTileKeys + 16;

template <class T>
struct BackwardCall {
  FusedCall<T> fused;
  const AttentionGradients<T>& gradients;
  View<T, 4> dbias;  // [B, H, Tq, Tk], or empty
  View<const T, 4> dout;
  const AttentionSaved<T>& saved;

  Index chunks;  // at least 1, so that dq is written even where there are no keys
  Index tiles;   // of the queries of a head
  // Only where there are several chunks:
  T* means = nullptr;    // [B, H, Tq] Σ dout·out
  T* dq_sums = nullptr;  // [B, H, Tq][round_up(D, kPanel)] where dq cannot be added into in place
  std::atomic<Index>* chunks_done = nullptr;  // [B, H, tiles]
};

// The functions of one instruction set.
template <class T>
struct BackwardTable {
  void (*chunks)(const BackwardCall<T>&, std::atomic<Index>& next);  // one thread's share of all chunks
  void (*small)(const BackwardCall<T>&, KeyRange heads);             // small heads [B·G]
};

}  // namespace heedful

#endif  // HEEDFUL_ATTENTION_FUSED_BACKWARD_CALL_H_
