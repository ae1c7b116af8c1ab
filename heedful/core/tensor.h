// Tensor<T, Rank>: owns zero-initialised, contiguous memory that starts on a cache line. Moves, and copies only when
// asked (copy()).
#ifndef HEEDFUL_CORE_TENSOR_H_
#define HEEDFUL_CORE_TENSOR_H_

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <new>

#include "heedful/core/error.h"
#include "heedful/core/view.h"

namespace heedful {

inline constexpr std::size_t kTensorAlignment = 64;

// The number of elements, refused when an extent is negative or when the bytes would not fit an Index, those of the
// strides of an empty tensor included.
template <std::size_t Rank>
Index checked_size(const std::array<Index, Rank>& extents, Index element_bytes) {
  Index product = 1;
  for (Index extent : extents) {
    if (extent < 0) fail("tensor", "extent: expected at least 0, got {}", shape_text(extents));
  }
  bool is_empty = false;
  for (Index extent : extents) {
    if (extent == 0) {
      is_empty = true;
      continue;
    }
    if (product > std::numeric_limits<Index>::max() / element_bytes / extent) {
      fail("tensor", "size: {} does not fit this machine", shape_text(extents));
    }
    product *= extent;
  }
  return is_empty ? 0 : product;
}

template <class T, int Rank>
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(const Extents<Rank>& extents) {
    const Index size = checked_size(extents, static_cast<Index>(sizeof(T)));
    const std::size_t bytes = std::max(static_cast<std::size_t>(size) * sizeof(T), sizeof(T));
    memory_.reset(static_cast<T*>(::operator new(bytes, std::align_val_t(kTensorAlignment))));
    std::uninitialized_value_construct_n(memory_.get(), size);
    view_ = View<T, Rank>(memory_.get(), extents);
  }

  Tensor copy() const {
    Tensor result(view_.extents());
    std::copy_n(data(), size(), result.data());
    return result;
  }
  void fill(T value) { std::fill_n(data(), size(), value); }

  View<T, Rank> view() { return view_; }
  View<const T, Rank> view() const { return view_; }
  operator View<T, Rank>() { return view_; }              // NOLINT(google-explicit-constructor)
  operator View<const T, Rank>() const { return view_; }  // NOLINT(google-explicit-constructor)

  T* data() { return view_.data(); }
  const T* data() const { return view_.data(); }
  T* begin() { return data(); }
  T* end() { return data() + size(); }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size(); }
  Index size() const { return view_.size(); }
  Index extent(int axis) const { return view_.extent(axis); }
  const Extents<Rank>& extents() const { return view_.extents(); }
  template <class... Indices>
  T& operator()(Indices... indices) {
    return view_(indices...);
  }
  template <class... Indices>
  const T& operator()(Indices... indices) const {
    return view_(indices...);
  }

 private:
  struct Free {
    void operator()(T* data) const { ::operator delete(data, std::align_val_t(kTensorAlignment)); }
  };
  std::unique_ptr<T, Free> memory_;
  View<T, Rank> view_;
};

}  // namespace heedful

#endif  // HEEDFUL_CORE_TENSOR_H_
