// KvCache: the keys and values of every position so far, so that a new token computes only its own.
//     per layer  keys [B, G, capacity, D], values [B, G, capacity, E]
// A key stands at its absolute position and is never moved. Each layer has its own length, for during a step the
// first layers are one position ahead of the last.
#ifndef HEEDFUL_ATTENTION_KV_CACHE_H_
#define HEEDFUL_ATTENTION_KV_CACHE_H_

#include <vector>

#include "heedful/core/tensor.h"
#include "heedful/core/view.h"

namespace heedful {

struct KvCacheShape {
  Index layers, B, G, capacity, D, E;

  Index elements() const { return layers * B * G * capacity * (D + E); }
};

template <class T>
class KvCache {
 public:
  explicit KvCache(const KvCacheShape& shape);  // Error where an extent is negative or the size is too large

  const KvCacheShape& shape() const { return shape_; }
  Index length(Index layer) const { return lengths_[static_cast<std::size_t>(layer)]; }

  // Writes k [B, G, n, D] and v [B, G, n, E] at positions position … position + n − 1. Throws Error unless position
  // is the layer's length (nothing is skipped or overwritten by accident) and there is room; then nothing changes.
  void append(Index layer, Index position, In<T, 4> k, In<T, 4> v);

  // The first `length(layer)` positions.
  View<const T, 4> keys(Index layer) const;    // [B, G, length, D]
  View<const T, 4> values(Index layer) const;  // [B, G, length, E]

  // Forgets every position from `length` on, in all layers: afterwards the cache is as if they had never been
  // appended. Throws Error where a layer is shorter already.
  void truncate(Index length);

 private:
  Index checked(Index layer) const;

  KvCacheShape shape_;
  Tensor<T, 5> keys_, values_;  // [layers, B, G, capacity, D], [layers, B, G, capacity, E]
  std::vector<Index> lengths_;  // [layers]
};

}  // namespace heedful

#endif  // HEEDFUL_ATTENTION_KV_CACHE_H_
