// KvCache: the keys and values of every position so far, so that a new token computes only its own.
//     per layer  keys [B, G, ⌈capacity/16⌉, D, 16], values [B, G, capacity, E]
// A key stands at its absolute position and is never moved. Keys lie in panels of 16, number d of each side by side, as
// the products of attention read them; out of rows, every query would have to transpose the whole cache. Each
// layer has its own length, for during a step the first layers are one position ahead of the last.
//
// A cache in bfloat16 takes half the memory of one in float, and a query half the time where memory is the limit.
// Each number is rounded, by way of float, to 8 bits: relative errors up to 2⁻⁹ in keys and values. What comes of the
// rounded numbers is as exact as ever, and has the same bits whatever the chunks of the prompt.
#ifndef HEEDFUL_ATTENTION_KV_CACHE_H_
#define HEEDFUL_ATTENTION_KV_CACHE_H_

#include <vector>

#include "heedful/attention/attention.h"
#include "heedful/core/enum_names.h"
#include "heedful/core/tensor.h"
#include "heedful/core/view.h"

namespace heedful {

struct KvCacheShape {
  Index layers, B, G, capacity, D, E;

  Index key_panels() const { return capacity / kPanel + (capacity % kPanel != 0 ? 1 : 0); }  // of one head
};

enum class CacheType { full, bf16 };
inline constexpr EnumName<CacheType> kCacheTypeNames[] = {{CacheType::full, "full"}, {CacheType::bf16, "bf16"}};

template <class T>
class KvCache {
 public:
  // Throws Error where an extent is negative or the size is too large. The full type is T.
  explicit KvCache(const KvCacheShape& shape, CacheType type = CacheType::full);

  const KvCacheShape& shape() const { return shape_; }
  Index elements() const {  // allocated
    return keys_.size() + values_.size() + keys_bf16_.size() + values_bf16_.size();
  }
  Index length(Index layer) const { return lengths_[static_cast<std::size_t>(layer)]; }

  // Writes k [B, G, n, D] and v [B, G, n, E] at positions position … position + n − 1. Throws Error unless position
  // is the layer's length (nothing is skipped or overwritten by accident) and there is room; then nothing changes.
  void append(Index layer, Index position, In<T, 4> k, In<T, 4> v);

  // The first `length(layer)` positions of a full cache; throws Error of another.
  Tensor<T, 4> keys(Index layer) const;        // [B, G, length, D], copied out of the panels
  View<const T, 4> values(Index layer) const;  // [B, G, length, E]
  // Gives attention the first `length(layer)` positions, in place of k and v: key_panels and v, or those in bf16.
  void lend(AttentionInputs<T>& inputs, Index layer) const;

  // Forgets every position from `length` on, in all layers: afterwards the cache is as if they had never been
  // appended. Throws Error where a layer is shorter already.
  void truncate(Index length);

 private:
  Index checked(Index layer) const;

  KvCacheShape shape_;
  Tensor<T, 6> keys_;                // [layers, B, G, ⌈capacity/16⌉, D, 16] and
  Tensor<T, 5> values_;              // [layers, B, G, capacity, E], or
  Tensor<Bfloat16, 6> keys_bf16_;    // the same
  Tensor<Bfloat16, 5> values_bf16_;  //
  std::vector<Index> lengths_;       // [layers]
};

}  // namespace heedful

#endif  // HEEDFUL_ATTENTION_KV_CACHE_H_
