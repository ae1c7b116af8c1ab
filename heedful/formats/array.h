// An array as it comes from a file: raw little-endian bytes with a type and a shape, and the named set of them that a
// .npz or .safetensors file holds.
#ifndef HEEDFUL_FORMATS_ARRAY_H_
#define HEEDFUL_FORMATS_ARRAY_H_

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heedful/core/tensor.h"

namespace heedful {

enum class DataType { f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8, boolean };

Index byte_size(DataType type);
std::string_view name(DataType type);  // "f64", …

struct Array {
  DataType type = DataType::f64;
  std::vector<Index> shape;      // empty: one number
  std::vector<std::byte> bytes;  // row-major, little-endian

  Index size() const;  // number of elements
  std::string shape_text() const;
};

using ArrayMap = std::map<std::string, Array, std::less<>>;

// Numbers as float, double, Index or bool; throws Error where the rank differs or a value does not fit: a fraction or
// an overflow into Index, a finite number that would become infinite, anything but 0 and 1 into bool or out of a
// boolean. Into float and double the rest rounds to nearest. Ranks 1 to 5.
template <class T, int Rank>
Tensor<T, Rank> to_tensor(const Array& array, std::string_view name);
template <class T>
std::vector<T> to_vector(const Array& array, std::string_view name);  // any rank, flattened

template <class T, int Rank>
Array to_array(View<const T, Rank> view);  // f32, f64, i64 or boolean, as T is
template <class T, int Rank>
Array to_array(const Tensor<T, Rank>& tensor) {
  return to_array(tensor.view());
}

// The elements of a shape and their bytes; throws Error(where) where an extent is negative or the product too large for
// this machine. What a file claims is not to be multiplied unchecked.
struct ArraySize {
  Index elements = 0, bytes = 0;
};
ArraySize array_size(DataType type, std::span<const Index> shape, std::string_view where);

// Throws Error(where) unless the array has the bytes that its shape asks for.
void check_size(const Array& array, std::string_view where);

// Throws Error naming what is there when `name` is not.
const Array& at(const ArrayMap& arrays, std::string_view name);

}  // namespace heedful

#endif  // HEEDFUL_FORMATS_ARRAY_H_
