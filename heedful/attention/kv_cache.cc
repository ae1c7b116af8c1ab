#include "heedful/attention/kv_cache.h"

#include <algorithm>
#include <string_view>

#include "heedful/core/error.h"

namespace heedful {
namespace {

constexpr std::string_view kWhere = "kv_cache";

template <class T>
void store(T& to, T from) {
  to = from;
}
template <class T>
void store(Bfloat16& to, T from) {
  to.bits = float_to_bfloat16(static_cast<float>(from));
}

template <class S, class T>
void store_all(View<S, 4> to, View<const T, 4> from) {
  const auto& [B, G, n, width] = from.extents();
  for (Index b = 0; b < B; ++b) {
    for (Index g = 0; g < G; ++g) {
      for (Index i = 0; i < n; ++i) {
        for (Index c = 0; c < width; ++c) store(to(b, g, i, c), from(b, g, i, c));
      }
    }
  }
}

}  // namespace

template <class T>
KvCache<T>::KvCache(const KvCacheShape& shape, CacheType type) : shape_(shape) {
  const Extents<5> keys{shape.layers, shape.B, shape.G, shape.capacity, shape.D};
  const Extents<5> values{shape.layers, shape.B, shape.G, shape.capacity, shape.E};
  if (type == CacheType::full) {
    keys_ = Tensor<T, 5>(keys);
    values_ = Tensor<T, 5>(values);
  } else {
    keys_bf16_ = Tensor<Bfloat16, 5>(keys);
    values_bf16_ = Tensor<Bfloat16, 5>(values);
  }
  lengths_.assign(static_cast<std::size_t>(shape.layers), 0);  // a size that fits, now
}

template <class T>
Index KvCache<T>::checked(Index layer) const {
  require(0 <= layer && layer < shape_.layers, kWhere, "layer: expected 0 to {}, got {}", shape_.layers - 1, layer);
  return layer;
}

template <class T>
void KvCache<T>::append(Index layer, Index position, In<T, 4> k, In<T, 4> v) {
  const Index n = k.extent(2), filled = length(checked(layer));
  const Extents<4> expected_k{shape_.B, shape_.G, n, shape_.D}, expected_v{shape_.B, shape_.G, n, shape_.E};
  require(k.extents() == expected_k, kWhere, "k: expected [B, G, n, D] = {}, got {}", shape_text(expected_k),
          shape_text(k.extents()));
  require(v.extents() == expected_v, kWhere, "v: expected [B, G, n, E] = {}, got {}", shape_text(expected_v),
          shape_text(v.extents()));
  require(position == filled, kWhere, "position: expected {}, the first free one of layer {}, got {}", filled, layer,
          position);
  require(n <= shape_.capacity - filled, kWhere, "capacity: expected at most {} more positions in layer {}, got {}",
          shape_.capacity - filled, layer, n);
  if (keys_.data() != nullptr) {
    store_all<T, T>(keys_.view()[layer].slice(2, filled, filled + n), k);
    store_all<T, T>(values_.view()[layer].slice(2, filled, filled + n), v);
  } else {
    store_all<Bfloat16, T>(keys_bf16_.view()[layer].slice(2, filled, filled + n), k);
    store_all<Bfloat16, T>(values_bf16_.view()[layer].slice(2, filled, filled + n), v);
  }
  lengths_[static_cast<std::size_t>(layer)] += n;
}

template <class T>
View<const T, 4> KvCache<T>::keys(Index layer) const {
  require(keys_.data() != nullptr, kWhere, "keys: expected a full cache, got one in bf16");
  return keys_.view()[checked(layer)].slice(2, 0, length(layer));
}

template <class T>
View<const T, 4> KvCache<T>::values(Index layer) const {
  require(values_.data() != nullptr, kWhere, "values: expected a full cache, got one in bf16");
  return values_.view()[checked(layer)].slice(2, 0, length(layer));
}

template <class T>
void KvCache<T>::lend(AttentionInputs<T>& inputs, Index layer) const {
  inputs.k = inputs.v = {};
  if (keys_.data() != nullptr) {
    inputs.k = keys(layer);
    inputs.v = values(layer);
  } else {
    inputs.k_bf16 = keys_bf16_.view()[checked(layer)].slice(2, 0, length(layer));
    inputs.v_bf16 = values_bf16_.view()[checked(layer)].slice(2, 0, length(layer));
  }
}

template <class T>
void KvCache<T>::truncate(Index length) {
  for (Index filled : lengths_) {
    require(0 <= length && length <= filled, kWhere, "truncate: expected 0 to {}, got {}", filled, length);
  }
  std::fill(lengths_.begin(), lengths_.end(), length);
}

template class KvCache<float>;
template class KvCache<double>;

}  // namespace heedful
