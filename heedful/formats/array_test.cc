#include "heedful/formats/array.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "heedful/core/error.h"

namespace heedful {
namespace {

using testing::HasSubstr;

template <class T>
Array array_of(DataType type, std::vector<Index> shape, const std::vector<T>& values) {
  Array array{type, std::move(shape), std::vector<std::byte>(values.size() * sizeof(T))};
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

template <class T>
std::string refusal(const Array& array) {
  try {
    to_vector<T>(array, "x");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

constexpr auto kInfinity = std::numeric_limits<double>::infinity();

TEST(ArrayTest, EveryTypeReadsAsNumbers) {
  const std::vector<double> expected{0, 1, 100};
  const auto numbers = [](const Array& array) { return to_vector<double>(array, "x"); };
  EXPECT_EQ(numbers(array_of<double>(DataType::f64, {3}, {0, 1, 100})), expected);
  EXPECT_EQ(numbers(array_of<float>(DataType::f32, {3}, {0, 1, 100})), expected);
  EXPECT_EQ(numbers(array_of<std::uint16_t>(DataType::f16, {3}, {0, 0x3C00, 0x5640})), expected);
  EXPECT_EQ(numbers(array_of<std::uint16_t>(DataType::bf16, {3}, {0, 0x3F80, 0x42C8})), expected);
  EXPECT_EQ(numbers(array_of<std::int64_t>(DataType::i64, {3}, {0, 1, 100})), expected);
  EXPECT_EQ(numbers(array_of<std::int32_t>(DataType::i32, {3}, {0, 1, 100})), expected);
  EXPECT_EQ(numbers(array_of<std::int16_t>(DataType::i16, {3}, {0, 1, 100})), expected);
  EXPECT_EQ(numbers(array_of<std::int8_t>(DataType::i8, {3}, {0, 1, 100})), expected);
  EXPECT_EQ(numbers(array_of<std::uint64_t>(DataType::u64, {3}, {0, 1, 100})), expected);
  EXPECT_EQ(numbers(array_of<std::uint32_t>(DataType::u32, {3}, {0, 1, 100})), expected);
  EXPECT_EQ(numbers(array_of<std::uint16_t>(DataType::u16, {3}, {0, 1, 100})), expected);
  EXPECT_EQ(numbers(array_of<std::uint8_t>(DataType::u8, {3}, {0, 1, 100})), expected);
  EXPECT_EQ(numbers(array_of<std::uint8_t>(DataType::boolean, {2}, {0, 1})), (std::vector<double>{0, 1}));
  EXPECT_EQ(numbers(array_of<std::int8_t>(DataType::i8, {1}, {-1})), std::vector<double>{-1});
}

TEST(ArrayTest, KeepsWhatFloatsCanSay) {
  const auto values = to_vector<float>(array_of<double>(DataType::f64, {3}, {0.1, -kInfinity, NAN}), "x");
  EXPECT_EQ(values[0], 0.1f);
  EXPECT_EQ(values[1], -kInfinity);
  EXPECT_TRUE(std::isnan(values[2]));
  EXPECT_EQ(refusal<float>(array_of<double>(DataType::f64, {2}, {1, 1e39})),
            "[x] element 1: expected a number within the range of float, got 1e+39");
}

TEST(ArrayTest, WholeNumbersOnlyIntoIndex) {
  EXPECT_EQ(to_vector<Index>(array_of<double>(DataType::f64, {2}, {-3, 0x1p62}), "x"),
            (std::vector<Index>{-3, Index{1} << 62}));
  EXPECT_EQ(refusal<Index>(array_of<float>(DataType::f32, {2}, {3, 2.5})),
            "[x] element 1: expected a whole number of 64 bits, got 2.5");
  for (double value : {0x1p63, -0x1.0000000000001p63, kInfinity, double{NAN}}) {
    EXPECT_NE(refusal<Index>(array_of<double>(DataType::f64, {1}, {value})), "accepted") << value;
  }
  EXPECT_EQ(refusal<Index>(array_of<double>(DataType::f64, {1}, {-0x1p63})), "accepted");
  EXPECT_NE(refusal<Index>(array_of<std::uint64_t>(DataType::u64, {1}, {std::uint64_t{1} << 63})), "accepted");
}

TEST(ArrayTest, ZeroAndOneOnlyIntoBool) {
  EXPECT_EQ(to_vector<bool>(array_of<float>(DataType::f32, {3}, {1, 0, 1}), "x"),
            (std::vector<bool>{true, false, true}));
  EXPECT_EQ(refusal<bool>(array_of<std::int64_t>(DataType::i64, {1}, {2})), "[x] element 0: expected 0 or 1, got 2");
  EXPECT_NE(refusal<bool>(array_of<float>(DataType::f32, {1}, {NAN})), "accepted");
  EXPECT_EQ(refusal<double>(array_of<std::uint8_t>(DataType::boolean, {1}, {2})),
            "[x] boolean: expected 0 or 1, got 2");
}

TEST(ArrayTest, TensorsGoOutAndComeBack) {
  Tensor<float, 3> tensor({2, 3, 5});
  for (Index i = 0; i < tensor.size(); ++i) tensor.data()[i] = static_cast<float>(i) / 7;
  const Array array = to_array(tensor);
  EXPECT_EQ(array.type, DataType::f32);
  EXPECT_EQ(array.shape_text(), "[2, 3, 5]");
  const Tensor<float, 3> back = to_tensor<float, 3>(array, "x");
  EXPECT_TRUE(std::equal(tensor.begin(), tensor.end(), back.begin(), back.end()));

  // A view of other strides is written in the order of its own axes.
  const View<const float, 3> turned = std::as_const(tensor).view().permute({2, 0, 1});
  const Tensor<float, 3> turned_back = to_tensor<float, 3>(to_array(turned), "x");
  for (Index i = 0; i < 5; ++i) {
    for (Index j = 0; j < 2; ++j) {
      for (Index k = 0; k < 3; ++k) EXPECT_EQ(turned_back(i, j, k), tensor(j, k, i));
    }
  }
  Tensor<bool, 1> flags({3});
  flags(1) = true;
  EXPECT_EQ(to_array(flags).type, DataType::boolean);
  EXPECT_EQ(to_vector<bool>(to_array(flags), "x"), (std::vector<bool>{false, true, false}));
  EXPECT_EQ(to_array(Tensor<Index, 1>({3})).type, DataType::i64);
  EXPECT_EQ(to_array(Tensor<double, 2>({3, 0})).size(), 0);
}

TEST(ArrayTest, RefusesAnotherRankOrSize) {
  const Array array = array_of<float>(DataType::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THROW((to_tensor<float, 1>(array, "x")), Error);
  EXPECT_THROW((to_tensor<float, 3>(array, "x")), Error);
  EXPECT_EQ(to_vector<float>(array, "x").size(), 6u);
  EXPECT_EQ(to_vector<float>(array_of<float>(DataType::f32, {}, {9}), "x"), std::vector<float>{9});
  EXPECT_NE(refusal<float>(array_of<float>(DataType::f32, {2}, {1, 2, 3})), "accepted");
  EXPECT_NE(refusal<float>(array_of<float>(DataType::f32, {-1}, {1})), "accepted");
  EXPECT_NE(refusal<float>(array_of<float>(DataType::f32, {Index{1} << 40, Index{1} << 40}, {1})), "accepted");
}

TEST(ArrayTest, SizesAreMultipliedWithCare) {
  constexpr Index kMax = std::numeric_limits<Index>::max();
  const auto size = [](DataType type, const std::vector<Index>& shape) { return array_size(type, shape, "x"); };
  EXPECT_EQ(size(DataType::f64, {}).bytes, 8);
  EXPECT_EQ(size(DataType::f16, {3, 5}).bytes, 30);
  EXPECT_EQ(size(DataType::f64, {kMax, 0, kMax}).bytes, 0);
  EXPECT_EQ(size(DataType::u8, {kMax}).elements, kMax);
  EXPECT_EQ(size(DataType::f64, {kMax / 8}).elements, kMax / 8);
  EXPECT_THROW(size(DataType::f64, {kMax / 8 + 1}), Error);
  EXPECT_THROW(size(DataType::u8, {Index{1} << 32, Index{1} << 32}), Error);
  EXPECT_THROW(size(DataType::u8, {-1}), Error);
  EXPECT_THROW(size(DataType::u8, {0, -1}), Error);
}

TEST(ArrayTest, AMissingNameSaysWhatIsThere) {
  const ArrayMap arrays{{"keys", {}}, {"values", {}}};
  EXPECT_EQ(&at(arrays, "keys"), &arrays.at("keys"));
  try {
    at(arrays, "query");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("expected \"query\", got \"keys\", \"values\""));
  }
}

}  // namespace
}  // namespace heedful
