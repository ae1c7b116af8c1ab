// How fused attention's forward pass cuts its work, and the functions of one instruction set that do it.
#ifndef HEEDFUL_ATTENTION_FUSED_FORWARD_TASK_H_
#define HEEDFUL_ATTENTION_FUSED_FORWARD_TASK_H_

#include "heedful/attention/fused_call.h"

namespace heedful {

// Running softmax of some rows.
template <class T>
struct RowState {
  T* out;  // [rows][out_stride], not yet divided by the sum
  T* max;  // [rows]
  T* sum;  // [rows]
};

// Queries [first_query, last_query) of all query heads on key-value head g of sequence b.
template <class T>
struct ForwardTask {
  Index b, g, first_query, last_query;
  PackedHead<T> packed;
  // Where one block is cut by chunks: the state of the rows after one chunk alone.
  RowState<T> partials{};  // [chunks][rows]
  Index chunk = 0;
};

// What a task does: a whole block, one of its chunks, or the joining of chunks that were done before.
enum class ForwardPart { whole, chunk, join };

// One chunk of one head, laid out.
template <class T>
struct PackTask {
  Index b, g, chunk;
  T* key_panels;  // of the head, or null
  T* values;      // of the head, or null
  Index value_stride;
};

// The functions of one instruction set.
template <class T>
struct ForwardTable {
  void (*pack)(const FusedCall<T>&, const PackTask<T>&);
  void (*run)(const FusedCall<T>&, const ForwardTask<T>&, const AttentionOutputs<T>&, ForwardPart);
  void (*small)(const FusedCall<T>&, KeyRange heads, const AttentionOutputs<T>&);  // small heads [B·G]
  bool (*rows_are_ready)(View<const T, 4>);
};

}  // namespace heedful

#endif  // HEEDFUL_ATTENTION_FUSED_FORWARD_TASK_H_
