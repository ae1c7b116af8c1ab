#include "heedful/formats/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "heedful/core/error.h"
#include "heedful/formats/test_files.h"

namespace heedful {
namespace {

using testing::HasSubstr;

std::vector<std::byte> bytes_of(std::string_view text) {
  const Bytes bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> file_of(std::string_view header, std::string_view data) {
  std::string text("\x93NUMPY\x01\x00", 8);
  text += {static_cast<char>(header.size() & 0xFF), static_cast<char>(header.size() >> 8)};
  return bytes_of(text + std::string(header) + std::string(data));
}

std::string refusal(std::vector<std::byte> file) {
  try {
    parse_npy(std::move(file), "x");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

constexpr std::string_view kFourBytes = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2), }\n";

TEST(NpyTest, WritesTheHeaderThatNumpyWrites) {
  const Array array = to_array(Tensor<float, 2>({3, 4}));
  std::string expected("\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }", 69);
  expected.append(128 - 1 - expected.size(), ' ');
  EXPECT_EQ(npy_preamble(array, "x"), expected + "\n");
  EXPECT_THAT(npy_preamble(to_array(Tensor<double, 1>({7})), "x"),
              HasSubstr("'<f8', 'fortran_order': False, 'shape': (7,), }"));
  EXPECT_THAT(npy_preamble({DataType::boolean, {}, {std::byte{1}}}, "x"),
              HasSubstr("'|b1', 'fortran_order': False, 'shape': (), }"));
}

TEST(NpyTest, EveryTypeComesBack) {
  const TemporaryFolder folder;
  for (DataType type : {DataType::f64, DataType::f32, DataType::f16, DataType::i64, DataType::i32, DataType::i16,
                        DataType::i8, DataType::u64, DataType::u32, DataType::u16, DataType::u8, DataType::boolean}) {
    for (const std::vector<Index>& shape : std::vector<std::vector<Index>>{{}, {0}, {5}, {2, 0, 3}, {2, 3, 4}}) {
      Array array{type, shape, {}};
      array.bytes.resize(static_cast<std::size_t>(array.size() * byte_size(type)));
      for (std::size_t i = 0; i < array.bytes.size(); ++i) array.bytes[i] = static_cast<std::byte>(i * 37);
      write_npy(folder / "array.npy", array);
      const Array back = read_npy(folder / "array.npy");
      EXPECT_EQ(back.type, type);
      EXPECT_EQ(back.shape, shape);
      EXPECT_EQ(back.bytes, array.bytes);
    }
  }
}

TEST(NpyTest, RefusesToWriteWhatNumpyCannotRead) {
  const TemporaryFolder folder;
  EXPECT_THROW(write_npy(folder / "a.npy", {DataType::bf16, {1}, std::vector<std::byte>(2)}), Error);
  EXPECT_THROW(write_npy(folder / "a.npy", {DataType::f32, {2}, std::vector<std::byte>(4)}), Error);
  EXPECT_THROW(write_npy(folder / "a.npy", {DataType::u8, std::vector<Index>(65, 1), {std::byte{}}}), Error);
  EXPECT_FALSE(std::filesystem::exists(folder / "a.npy"));
}

TEST(NpyTest, ReadsTheFormsThatNumpyReads) {
  EXPECT_EQ(parse_npy(file_of(kFourBytes, "abcd"), "x").shape, (std::vector<Index>{2, 2}));
  for (std::string_view header : {
           "{'descr': '|u1', 'fortran_order': False, 'shape': (4,)}",
           "{\"shape\":(4,),\"descr\":\"u1\",\"fortran_order\":False}",
           " { 'shape' : ( 4 , ) , 'fortran_order' : False , 'descr' : '<u1' , } ",
           "{'descr': '|u1', 'fortran_order': False, 'shape': (4L,), }",
           "{'descr': '=u1', 'fortran_order': True, 'shape': (4,), }",
       }) {
    const Array array = parse_npy(file_of(header, "abcd"), "x");
    EXPECT_EQ(array.shape, std::vector<Index>{4}) << header;
    EXPECT_EQ(as_text(array.bytes), "abcd") << header;
  }
  for (const char version : {'\2', '\3'}) {
    std::string text("\x93NUMPY?\0", 8);
    text[6] = version;
    text += {static_cast<char>(kFourBytes.size()), 0, 0, 0};
    const Array array = parse_npy(bytes_of(text + std::string(kFourBytes) + "abcd"), "x");
    EXPECT_EQ(as_text(array.bytes), "abcd");
  }
}

TEST(NpyTest, TurnsBigEndianAndFortranOrderAround) {
  const Array turned = parse_npy(file_of("{'descr': '>u2', 'fortran_order': True, 'shape': (2, 3), }",
                                         std::string_view("\0\1\0\2\0\3\0\4\0\5\0\6", 12)),
                                 "x");
  // By columns the numbers are 1 2 | 3 4 | 5 6.
  EXPECT_EQ(to_vector<Index>(turned, "x"), (std::vector<Index>{1, 3, 5, 2, 4, 6}));

  std::vector<std::byte> data(2 * 3 * 4 * 5);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i);
  const Array deep =
      parse_npy(file_of("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 4, 5), }", as_text(data)), "x");
  const Tensor<Index, 4> tensor = to_tensor<Index, 4>(deep, "x");
  for (Index i = 0; i < 2; ++i) {
    for (Index j = 0; j < 3; ++j) {
      for (Index k = 0; k < 4; ++k) {
        for (Index l = 0; l < 5; ++l) EXPECT_EQ(tensor(i, j, k, l), i + 2 * (j + 3 * (k + 4 * l)));
      }
    }
  }
  EXPECT_EQ(parse_npy(file_of("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 0), }", ""), "x").size(), 0);
}

TEST(NpyTest, RefusesHostileHeaders) {
  const auto header = [](std::string_view type, std::string_view order, std::string_view shape) {
    return refusal(
        file_of(fmt::format("{{'descr': {}, 'fortran_order': {}, 'shape': {}, }}", type, order, shape), "abcd"));
  };
  ASSERT_EQ(header("'|u1'", "False", "(4,)"), "accepted");
  EXPECT_THAT(header("'|O'", "False", "(4,)"), HasSubstr("pickled objects, which are never read"));
  EXPECT_THAT(header("[('a', '<f4')]", "False", "(4,)"), HasSubstr("got records"));
  for (std::string_view type : {"''", "'<'", "'<U1'", "'|V4'", "'<f16'", "'<c8'", "'u1x'", "'|\\x751'", "u1", "4"}) {
    EXPECT_NE(header(type, "False", "(4,)"), "accepted") << type;
  }
  for (std::string_view order : {"0", "'False'", "false", "None", "Falsey", ""}) {
    EXPECT_NE(header("'|u1'", order, "(4,)"), "accepted") << order;
  }
  for (std::string_view shape :
       {"4", "(4)", "[4]", "(4.0,)", "(-4,)", "(,)", "(4,,)", "(4", "(2 2)", "(9223372036854775808,)", "(0x4,)",
        "(4294967296, 4294967296)", "(2**2,)", "(True,)", "('4',)", "(5,)", "(3,)", "()"}) {
    EXPECT_NE(header("'|u1'", "False", shape), "accepted") << shape;
  }
  EXPECT_THAT(header("'<f8'", "False", "(4611686018427387904,)"), HasSubstr("does not fit this machine"));
  std::string ones = "(4,";
  for (int i = 0; i < 100; ++i) ones += "1,";
  EXPECT_THAT(header("'|u1'", "False", ones + ")"), HasSubstr("at most 64 axes"));

  for (std::string_view whole : {
           "",
           "{",
           "{}",
           "[]",
           "{'descr': '|u1', 'fortran_order': False}",
           "{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (4,)}",
           "{'descr': '|u1', 'fortran_order': False, 'shape': (4,), 'more': 1}",
           "{'descr': '|u1', 'fortran_order': False, 'shape': (4,)} + {}",
           "{'descr': '|u1' 'fortran_order': False, 'shape': (4,)}",
           "{'descr: |u1, fortran_order: False, shape: (4,)}",
           "{'descr': '|u1', 'fortran_order': __import__('os'), 'shape': (4,)}",
       }) {
    EXPECT_NE(refusal(file_of(whole, "abcd")), "accepted") << whole;
  }
}

TEST(NpyTest, RefusesOtherVersionsAndSizes) {
  std::vector<std::byte> file = file_of(kFourBytes, "abcd");
  for (const auto& [at, value] :
       std::vector<std::pair<std::size_t, int>>{{0, 0x92}, {5, 'y'}, {6, 0}, {6, 4}, {7, 1}}) {
    std::vector<std::byte> changed = file;
    changed[at] = static_cast<std::byte>(value);
    EXPECT_NE(refusal(changed), "accepted") << at;
  }
  EXPECT_NE(refusal(file_of(kFourBytes, "abc")), "accepted");
  EXPECT_NE(refusal(file_of(kFourBytes, "abcde")), "accepted");
  std::string claim("\x93NUMPY\x02\x00\xFF\xFF\xFF\xFF", 12);
  EXPECT_THAT(refusal(bytes_of(claim)), HasSubstr("expected at most 65535 bytes, got 4294967295"));
}

// Cut short anywhere, the file is refused; one byte changed anywhere, it is refused or read, never worse.
TEST(NpyTest, SurvivesEveryCutAndEveryChangedByte) {
  const std::vector<std::byte> file = file_of(kFourBytes, "abcd");
  for (std::size_t length = 0; length < file.size(); ++length) {
    EXPECT_NE(refusal({file.begin(), file.begin() + static_cast<Index>(length)}), "accepted") << length;
  }
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::vector<std::byte> changed = file;
      changed[at] = static_cast<std::byte>(value);
      const std::string result = refusal(std::move(changed));
      EXPECT_EQ(result.find('\n'), std::string::npos) << result;
    }
  }
}

}  // namespace
}  // namespace heedful
