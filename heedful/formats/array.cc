#include "heedful/formats/array.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

#include "heedful/core/error.h"
#include "heedful/core/half.h"

namespace heedful {
namespace {

struct TypeFacts {
  DataType type;
  std::string_view name;
  Index bytes;
};

constexpr std::array<TypeFacts, 13> kTypes{{{DataType::f64, "f64", 8},
                                            {DataType::f32, "f32", 4},
                                            {DataType::f16, "f16", 2},
                                            {DataType::bf16, "bf16", 2},
                                            {DataType::i64, "i64", 8},
                                            {DataType::i32, "i32", 4},
                                            {DataType::i16, "i16", 2},
                                            {DataType::i8, "i8", 1},
                                            {DataType::u64, "u64", 8},
                                            {DataType::u32, "u32", 4},
                                            {DataType::u16, "u16", 2},
                                            {DataType::u8, "u8", 1},
                                            {DataType::boolean, "boolean", 1}}};

const TypeFacts& facts(DataType type) {
  const auto index = static_cast<std::size_t>(type);
  HEEDFUL_CHECK(index < kTypes.size() && kTypes[index].type == type);
  return kTypes[index];
}

// One stored number converted to T, or nothing where it does not fit.
template <class T, class Stored>
std::optional<T> converted(Stored value) {
  if constexpr (std::is_same_v<T, bool>) {
    if (value != Stored{0} && value != Stored{1}) return std::nullopt;
    return value == Stored{1};
  } else if constexpr (std::is_floating_point_v<T>) {
    const T result = static_cast<T>(value);
    if constexpr (std::is_floating_point_v<Stored>) {
      if (std::isinf(result) && !std::isinf(value)) return std::nullopt;
    }
    return result;
  } else if constexpr (std::is_floating_point_v<Stored>) {
    // −2^63 and 2^63 are floats; the comparisons are false for NaN.
    if (!(value >= Stored{-0x1p63} && value < Stored{0x1p63}) || value != std::trunc(value)) return std::nullopt;
    return static_cast<T>(value);
  } else {
    if (!std::in_range<T>(value)) return std::nullopt;
    return static_cast<T>(value);
  }
}

template <class T>
constexpr std::string_view expected_text() {
  if (std::is_same_v<T, bool>) return "0 or 1";
  if (std::is_floating_point_v<T>) return "a number within the range of float";
  return "a whole number of 64 bits";
}

// Copies out every number, `decode` turning the bytes of one (as Raw) into its value.
template <class Raw, class Decode, class Output>
void convert_all(const Array& array, std::string_view name, Output output, const Decode& decode) {
  using T = typename std::iterator_traits<Output>::value_type;
  const std::byte* source = array.bytes.data();
  for (Index i = 0; i < array.size(); ++i, source += sizeof(Raw)) {
    Raw raw;
    std::memcpy(&raw, source, sizeof(Raw));
    const auto value = decode(raw);
    const std::optional<T> result = converted<T>(value);
    if (!result) fail(name, "element {}: expected {}, got {}", i, expected_text<T>(), value);
    *output++ = *result;
  }
}

template <class Output>
void convert(const Array& array, std::string_view name, Output output) {
  check_size(array, name);
  const auto as_stored = [](auto value) { return value; };
  switch (array.type) {
    case DataType::f64:
      return convert_all<double>(array, name, output, as_stored);
    case DataType::f32:
      return convert_all<float>(array, name, output, as_stored);
    case DataType::f16:
      return convert_all<std::uint16_t>(array, name, output, half_to_float);
    case DataType::bf16:
      return convert_all<std::uint16_t>(array, name, output, bfloat16_to_float);
    case DataType::i64:
      return convert_all<std::int64_t>(array, name, output, as_stored);
    case DataType::i32:
      return convert_all<std::int32_t>(array, name, output, as_stored);
    case DataType::i16:
      return convert_all<std::int16_t>(array, name, output, as_stored);
    case DataType::i8:
      return convert_all<std::int8_t>(array, name, output, as_stored);
    case DataType::u64:
      return convert_all<std::uint64_t>(array, name, output, as_stored);
    case DataType::u32:
      return convert_all<std::uint32_t>(array, name, output, as_stored);
    case DataType::u16:
      return convert_all<std::uint16_t>(array, name, output, as_stored);
    case DataType::u8:
      return convert_all<std::uint8_t>(array, name, output, as_stored);
    case DataType::boolean:
      return convert_all<std::uint8_t>(array, name, output, [name](std::uint8_t value) {
        require(value <= 1, name, "boolean: expected 0 or 1, got {}", value);
        return value;
      });
  }
}

template <class T>
constexpr DataType type_of() {
  if (std::is_same_v<T, double>) return DataType::f64;
  if (std::is_same_v<T, float>) return DataType::f32;
  if (std::is_same_v<T, bool>) return DataType::boolean;
  return DataType::i64;
}

template <class T, int Rank>
std::byte* append(std::byte* target, View<const T, Rank> view) {
  for (Index i = 0; i < view.extent(0); ++i) {
    if constexpr (Rank == 1) {
      std::memcpy(target, &view[i], sizeof(T));
      target += sizeof(T);
    } else {
      target = append(target, view[i]);
    }
  }
  return target;
}

}  // namespace

Index byte_size(DataType type) {
  return facts(type).bytes;
}
std::string_view name(DataType type) {
  return facts(type).name;
}

Index Array::size() const {
  return array_size(type, shape, "array").elements;
}

std::string Array::shape_text() const {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

ArraySize array_size(DataType type, std::span<const Index> shape, std::string_view where) {
  for (Index extent : shape) {
    require(extent >= 0, where, "shape: expected extents of at least 0, got [{}]", fmt::join(shape, ", "));
  }
  if (std::ranges::find(shape, Index{0}) != shape.end()) return {};
  const Index most = std::numeric_limits<Index>::max() / byte_size(type);
  Index elements = 1;
  for (Index extent : shape) {
    require(elements <= most / extent, where, "shape: [{}] does not fit this machine", fmt::join(shape, ", "));
    elements *= extent;
  }
  return {elements, elements * byte_size(type)};
}

void check_size(const Array& array, std::string_view where) {
  const Index expected = array_size(array.type, array.shape, where).bytes;
  require(std::cmp_equal(expected, array.bytes.size()), where, "size: expected {} bytes for {} {}, got {}", expected,
          name(array.type), array.shape_text(), array.bytes.size());
}

template <class T, int Rank>
Tensor<T, Rank> to_tensor(const Array& array, std::string_view name) {
  require(array.shape.size() == Rank, name, "shape: expected {} axes, got {}", Rank, array.shape_text());
  Extents<Rank> extents;
  std::ranges::copy(array.shape, extents.begin());
  Tensor<T, Rank> tensor(extents);
  convert(array, name, tensor.data());
  return tensor;
}

template <class T>
std::vector<T> to_vector(const Array& array, std::string_view name) {
  check_size(array, name);
  std::vector<T> values(static_cast<std::size_t>(array.size()));
  convert(array, name, values.begin());
  return values;
}

template <class T, int Rank>
Array to_array(View<const T, Rank> view) {
  Array array{type_of<T>(), {view.extents().begin(), view.extents().end()}, {}};
  array.bytes.resize(static_cast<std::size_t>(view.size()) * sizeof(T));
  append(array.bytes.data(), view);
  return array;
}

const Array& at(const ArrayMap& arrays, std::string_view name) {
  const auto found = arrays.find(name);
  if (found != arrays.end()) return found->second;
  std::vector<std::string_view> names;
  for (const auto& [other, array] : arrays) names.push_back(other);
  fail("arrays", "name: expected \"{}\", got \"{}\"", name, fmt::join(names, "\", \""));
}

#define HEEDFUL_INSTANTIATE_RANK(T, Rank)                                      \
  template Tensor<T, Rank> to_tensor<T, Rank>(const Array&, std::string_view); \
  template Array to_array<T, Rank>(View<const T, Rank>);
#define HEEDFUL_INSTANTIATE(T)                                          \
  template std::vector<T> to_vector<T>(const Array&, std::string_view); \
  HEEDFUL_INSTANTIATE_RANK(T, 1)                                        \
  HEEDFUL_INSTANTIATE_RANK(T, 2)                                        \
  HEEDFUL_INSTANTIATE_RANK(T, 3)                                        \
  HEEDFUL_INSTANTIATE_RANK(T, 4)                                        \
  HEEDFUL_INSTANTIATE_RANK(T, 5)
HEEDFUL_INSTANTIATE(float)
HEEDFUL_INSTANTIATE(double)
HEEDFUL_INSTANTIATE(Index)
HEEDFUL_INSTANTIATE(bool)
#undef HEEDFUL_INSTANTIATE
#undef HEEDFUL_INSTANTIATE_RANK

}  // namespace heedful
