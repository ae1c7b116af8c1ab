// The attention weights of a decoder on given tokens, and the pointer table drawn from them: which key each position
// weighs most, and how much. Weights are an internal variable of the computation, not an explanation of its answer
// (Jain & Wallace, arXiv:1902.10186).
#ifndef HEEDFUL_INSPECTION_ATTENTION_MAP_H_
#define HEEDFUL_INSPECTION_ATTENTION_MAP_H_

#include <optional>
#include <vector>

#include "heedful/decoder/decoder.h"

namespace heedful {

// One tensor a layer: [B, H, T, T], rows are queries. Recomputed from the keys and queries of a forward pass, which
// asking for the weights does not change.
template <class T>
std::vector<Tensor<T, 4>> attention_maps(const Context& context, const Decoder<T>& decoder,
                                         View<const Index, 2> tokens);

struct Pointer {
  Index layer = 0, head = 0;
  std::vector<Index> keys;      // the heaviest key of each of the positions looked at
  std::optional<Index> offset;  // key − query, where it is the same for all of them
  double mean_weight = 0;       // of the heaviest keys
};

// The pointers of sequence b at positions [begin, T), layer by layer, head by head.
template <class T>
std::vector<Pointer> pointer_table(const std::vector<Tensor<T, 4>>& maps, Index b, Index begin);

}  // namespace heedful

#endif  // HEEDFUL_INSPECTION_ATTENTION_MAP_H_
