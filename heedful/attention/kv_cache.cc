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
void store_rows(View<S, 4> to, View<const T, 4> from) {
  const auto& [B, G, n, width] = from.extents();
  for (Index b = 0; b < B; ++b) {
    for (Index g = 0; g < G; ++g) {
      for (Index i = 0; i < n; ++i) {
        for (Index c = 0; c < width; ++c) store(to(b, g, i, c), from(b, g, i, c));
      }
    }
  }
}

// from [B, G, n, D] as keys position … position + n − 1 of to [B, G, panels, D, 16].
template <class S, class T>
void store_panels(View<S, 5> to, Index position, View<const T, 4> from) {
  const auto& [B, G, n, D] = from.extents();
  for (Index b = 0; b < B; ++b) {
    for (Index g = 0; g < G; ++g) {
      const View<const T, 2> rows = from[b][g];
      for (Index i = 0, count = 0; i < n; i += count) {
        const Index column = (position + i) % kPanel;
        count = std::min(kPanel - column, n - i);
        const View<S, 2> panel = to[b][g][(position + i) / kPanel];
        for (Index d = 0; d < D; ++d) {
          const T* row = &rows(i, d);
          S* line = &panel(d, column);
          for (Index r = 0; r < count; ++r) store(line[r], row[r * rows.stride(0)]);
        }
      }
    }
  }
}

// The panels that hold the first `length` keys.
template <class T>
View<const T, 5> first_panels(const Tensor<T, 6>& keys, Index layer, Index length) {
  return keys.view()[layer].slice(2, 0, (length + kPanel - 1) / kPanel);
}

}  // namespace

template <class T>
KvCache<T>::KvCache(const KvCacheShape& shape, CacheType type) : shape_(shape) {
  const Extents<6> keys{shape.layers, shape.B, shape.G, shape.key_panels(), shape.D, kPanel};
  const Extents<5> values{shape.layers, shape.B, shape.G, shape.capacity, shape.E};
  if (type == CacheType::full) {
    keys_ = Tensor<T, 6>(keys);
    values_ = Tensor<T, 5>(values);
  } else {
    keys_bf16_ = Tensor<Bfloat16, 6>(keys);
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
    store_panels<T, T>(keys_.view()[layer], filled, k);
    store_rows<T, T>(values_.view()[layer].slice(2, filled, filled + n), v);
  } else {
    store_panels<Bfloat16, T>(keys_bf16_.view()[layer], filled, k);
    store_rows<Bfloat16, T>(values_bf16_.view()[layer].slice(2, filled, filled + n), v);
  }
  lengths_[static_cast<std::size_t>(layer)] += n;
}

template <class T>
Tensor<T, 4> KvCache<T>::keys(Index layer) const {
  require(keys_.data() != nullptr, kWhere, "keys: expected a full cache, got one in bf16");
  const View<const T, 5> from = keys_.view()[checked(layer)];
  Tensor<T, 4> rows({shape_.B, shape_.G, length(layer), shape_.D});
  for (Index b = 0; b < shape_.B; ++b) {
    for (Index g = 0; g < shape_.G; ++g) {
      for (Index j = 0; j < length(layer); ++j) {
        for (Index d = 0; d < shape_.D; ++d) rows(b, g, j, d) = from(b, g, j / kPanel, d, j % kPanel);
      }
    }
  }
  return rows;
}

template <class T>
View<const T, 4> KvCache<T>::values(Index layer) const {
  require(values_.data() != nullptr, kWhere, "values: expected a full cache, got one in bf16");
  return values_.view()[checked(layer)].slice(2, 0, length(layer));
}

template <class T>
void KvCache<T>::lend(AttentionInputs<T>& inputs, Index layer) const {
  inputs = {.q = inputs.q, .k = {}, .v = {}};
  if (keys_.data() != nullptr) {
    inputs.key_panels = first_panels(keys_, checked(layer), length(layer));
    inputs.v = values(layer);
  } else {
    inputs.key_panels_bf16 = first_panels(keys_bf16_, checked(layer), length(layer));
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
