#include "heedful/attention/kv_cache.h"

#include <algorithm>
#include <string_view>

#include "heedful/core/error.h"

namespace heedful {
namespace {

constexpr std::string_view kWhere = "kv_cache";

template <class T>
void copy(View<T, 4> to, View<const T, 4> from) {
  const auto& [B, G, n, width] = from.extents();
  for (Index b = 0; b < B; ++b) {
    for (Index g = 0; g < G; ++g) {
      for (Index i = 0; i < n; ++i) {
        for (Index c = 0; c < width; ++c) to(b, g, i, c) = from(b, g, i, c);
      }
    }
  }
}

}  // namespace

template <class T>
KvCache<T>::KvCache(const KvCacheShape& shape)
    : shape_(shape),
      keys_({shape.layers, shape.B, shape.G, shape.capacity, shape.D}),
      values_({shape.layers, shape.B, shape.G, shape.capacity, shape.E}),
      lengths_(static_cast<std::size_t>(shape.layers), 0) {}

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
  copy(keys_.view()[layer].slice(2, filled, filled + n), k);
  copy(values_.view()[layer].slice(2, filled, filled + n), v);
  lengths_[static_cast<std::size_t>(layer)] += n;
}

template <class T>
View<const T, 4> KvCache<T>::keys(Index layer) const {
  return keys_.view()[checked(layer)].slice(2, 0, length(layer));
}

template <class T>
View<const T, 4> KvCache<T>::values(Index layer) const {
  return values_.view()[checked(layer)].slice(2, 0, length(layer));
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
