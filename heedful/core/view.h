// View<T, Rank>: a strided window on memory owned by someone else; the names are those of std::mdspan (extent,
// stride, rank). Copying a view copies no element. Splitting heads, transposing and broadcasting are changes of
// strides: no number moves.
//
//     View<float, 3> x;                 // [B, T, C]
//     x(b, t, c)                        // one element
//     x[b]                              // [T, C], the leading axis fixed
//     x.slice(1, t0, t1)                // [B, t1 - t0, C]
//     x.permute({1, 0, 2})              // [T, B, C]
//
// A function takes its outputs as View<T, R> first and its inputs as In<T, R>: T is then deduced from the outputs
// alone, and a View<T>, View<const T> or Tensor<T> is accepted as input without a cast.
#ifndef HEEDFUL_CORE_VIEW_H_
#define HEEDFUL_CORE_VIEW_H_

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>

#include "heedful/core/check.h"

namespace heedful {

using Index = std::ptrdiff_t;

template <int Rank>
using Extents = std::array<Index, Rank>;

template <class T, int Rank>
class View {
 public:
  View() = default;
  View(T* data, const Extents<Rank>& extents) : data_(data), extents_(extents) {  // rows next to each other
    Index step = 1;
    for (int axis = Rank - 1; axis >= 0; --axis) {
      strides_[at(axis)] = step;
      step *= extents_[at(axis)];
    }
  }
  View(T* data, const Extents<Rank>& extents, const Extents<Rank>& strides)
      : data_(data), extents_(extents), strides_(strides) {}
  template <class U>
    requires(std::is_same_v<const U, T> && !std::is_same_v<U, T>)
  View(const View<U, Rank>& other)  // NOLINT(google-explicit-constructor)
      : data_(other.data()), extents_(other.extents()), strides_(other.strides()) {}

  static constexpr int rank() { return Rank; }
  T* data() const { return data_; }
  Index extent(int axis) const { return extents_[at(axis)]; }
  Index stride(int axis) const { return strides_[at(axis)]; }
  const Extents<Rank>& extents() const { return extents_; }
  const Extents<Rank>& strides() const { return strides_; }
  bool empty() const { return data_ == nullptr; }  // an optional input that was not given
  Index size() const {
    Index product = 1;
    for (Index extent : extents_) product *= extent;
    return product;
  }
  bool is_contiguous() const {
    Index step = 1;
    for (int axis = Rank - 1; axis >= 0; --axis) {
      if (extents_[at(axis)] > 1 && strides_[at(axis)] != step) return false;
      step *= extents_[at(axis)];
    }
    return true;
  }

  template <class... Indices>
    requires(sizeof...(Indices) == Rank)
  T& operator()(Indices... indices) const {
    const Extents<Rank> index{static_cast<Index>(indices)...};
    Index offset = 0;
    for (int axis = 0; axis < Rank; ++axis) offset += index[at(axis)] * strides_[at(axis)];
    return data_[offset];
  }

  auto operator[](Index index) const
    requires(Rank > 1)
  {
    Extents<Rank - 1> extents, strides;
    for (int axis = 1; axis < Rank; ++axis) {
      extents[at(axis - 1)] = extents_[at(axis)];
      strides[at(axis - 1)] = strides_[at(axis)];
    }
    return View<T, Rank - 1>(data_ + index * strides_[0], extents, strides);
  }
  T& operator[](Index index) const
    requires(Rank == 1)
  {
    return data_[index * strides_[0]];
  }

  View slice(int axis, Index begin, Index end) const {
    HEEDFUL_CHECK(0 <= begin && begin <= end && end <= extent(axis));
    View result = *this;
    result.data_ += begin * stride(axis);
    result.extents_[at(axis)] = end - begin;
    return result;
  }
  View permute(const std::array<int, Rank>& order) const {
    View result = *this;
    for (int axis = 0; axis < Rank; ++axis) {
      result.extents_[at(axis)] = extents_[at(order[at(axis)])];
      result.strides_[at(axis)] = strides_[at(order[at(axis)])];
    }
    return result;
  }
  View transpose() const
    requires(Rank == 2)
  {
    return permute({1, 0});
  }
  // The same elements in the same order under other extents; only for contiguous views.
  template <int NewRank>
  View<T, NewRank> reshape(const Extents<NewRank>& extents) const {
    const View<T, NewRank> result(data_, extents);
    HEEDFUL_CHECK(is_contiguous() && result.size() == size());
    return result;
  }

 private:
  static constexpr std::size_t at(int axis) { return static_cast<std::size_t>(axis); }
  T* data_ = nullptr;
  Extents<Rank> extents_{};
  Extents<Rank> strides_{};
};

template <class T, int Rank>
using In = std::type_identity_t<View<const T, Rank>>;
template <class T, int Rank>
using Out = std::type_identity_t<View<T, Rank>>;  // a further output, which may be a Tensor

// "[2, 3, 4]" where it is formatted: a check that passes builds no text.
template <std::size_t Rank>
struct ShapeText {
  std::array<Index, Rank> extents;
};
template <std::size_t Rank>
ShapeText<Rank> shape_text(const std::array<Index, Rank>& extents) {
  return {extents};
}
std::string extents_text(std::span<const Index> extents);

}  // namespace heedful

template <std::size_t Rank>
struct fmt::formatter<heedful::ShapeText<Rank>> {
  constexpr auto parse(format_parse_context& context) { return context.begin(); }
  auto format(const heedful::ShapeText<Rank>& shape, format_context& context) const {
    const std::string text = heedful::extents_text(shape.extents);
    return std::copy(text.begin(), text.end(), context.out());
  }
};

#endif  // HEEDFUL_CORE_VIEW_H_
