#include "heedful/formats/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "heedful/core/error.h"
#include "heedful/formats/test_files.h"

namespace heedful {
namespace {

using testing::HasSubstr;

std::string file_of(std::string_view header, std::string_view data) {
  std::string text(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) text[i] = static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return text + std::string(header) + std::string(data);
}

Safetensors parse(const std::string& file) {
  return parse_safetensors(as_bytes(file), "x");
}

std::string refusal(const std::string& file) {
  try {
    parse(file);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(SafetensorsTest, ReadsTheDocumentedForm) {
  const Safetensors contents = parse(file_of(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"U8","shape":[2],"data_offsets":[4,6]},)"
      R"("a\u00e9":{"dtype":"I16","shape":[1,2],"data_offsets":[0,4]},"none":{"dtype":"F64","shape":[3,0],"data_offsets":[4,4]}}   )",
      std::string_view("\1\0\2\0ab", 6)));
  ASSERT_EQ(contents.arrays.size(), 3u);
  EXPECT_EQ(to_vector<Index>(at(contents.arrays, "aé"), "a"), (std::vector<Index>{1, 2}));
  EXPECT_EQ(at(contents.arrays, "aé").shape, (std::vector<Index>{1, 2}));
  EXPECT_EQ(as_text(at(contents.arrays, "b").bytes), "ab");
  EXPECT_EQ(at(contents.arrays, "none").size(), 0);
  EXPECT_EQ(contents.metadata.at("format"), "pt");
  EXPECT_TRUE(parse(file_of("{}", "")).arrays.empty());
}

TEST(SafetensorsTest, ContentsComeBack) {
  const TemporaryFolder folder;
  Safetensors contents;
  for (DataType type :
       {DataType::f64, DataType::f32, DataType::f16, DataType::bf16, DataType::i64, DataType::i32, DataType::i16,
        DataType::i8, DataType::u64, DataType::u32, DataType::u16, DataType::u8, DataType::boolean}) {
    for (const std::vector<Index>& shape : std::vector<std::vector<Index>>{{}, {3}, {2, 0}, {1, 3, 5}}) {
      Array array{type, shape, {}};
      array.bytes.resize(static_cast<std::size_t>(array.size() * byte_size(type)));
      for (std::size_t i = 0; i < array.bytes.size(); ++i) array.bytes[i] = static_cast<std::byte>(i * 41);
      contents.arrays[fmt::format("{} \"{}\" é\n", name(type), array.shape_text())] = array;
    }
  }
  contents.metadata = {{"step", "100"}, {"", "\x01 and \""}};
  write_safetensors(folder / "a.safetensors", contents);
  const Safetensors back = read_safetensors(folder / "a.safetensors");
  EXPECT_EQ(back.metadata, contents.metadata);
  ASSERT_EQ(back.arrays.size(), contents.arrays.size());
  for (const auto& [name, array] : contents.arrays) {
    EXPECT_EQ(at(back.arrays, name).type, array.type) << name;
    EXPECT_EQ(at(back.arrays, name).shape, array.shape) << name;
    EXPECT_EQ(at(back.arrays, name).bytes, array.bytes) << name;
  }
}

// Others map the file and use the bytes in place.
TEST(SafetensorsTest, EveryTensorStartsOnAMultipleOfItsElement) {
  const TemporaryFolder folder;
  Safetensors contents;
  contents.arrays["a"] = {DataType::u8, {3}, std::vector<std::byte>(3, std::byte{'u'})};
  contents.arrays["b"] = {DataType::f32, {1}, std::vector<std::byte>(4, std::byte{'f'})};
  contents.arrays["c"] = {DataType::f16, {1}, std::vector<std::byte>(2, std::byte{'h'})};
  contents.arrays["d"] = {DataType::f64, {1}, std::vector<std::byte>(8, std::byte{'d'})};
  write_safetensors(folder / "a.safetensors", contents);
  const std::vector<std::byte> bytes = read_file(folder / "a.safetensors");
  ASSERT_TRUE(as_text(bytes).ends_with("ddddddddffffhhuuu"));
  EXPECT_EQ((bytes.size() - 17) % 8, 0u);
}

TEST(SafetensorsTest, RefusesToWriteWhatItCouldNotRead) {
  const TemporaryFolder folder;
  const auto path = folder / "a.safetensors";
  const Array array{DataType::u8, {1}, {std::byte{1}}};
  EXPECT_THROW(write_safetensors(path, {{{"__metadata__", array}}, {}}), Error);
  EXPECT_THROW(write_safetensors(path, {{{"\xFF", array}}, {}}), Error);
  EXPECT_THROW(write_safetensors(path, {{{"a", array}}, {{"key", "\xC3"}}}), Error);
  EXPECT_THROW(write_safetensors(path, {{{"a", {DataType::u8, {2}, {std::byte{1}}}}}, {}}), Error);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(SafetensorsTest, RefusesHostileEntries) {
  const auto entry = [](std::string_view type, std::string_view shape, std::string_view offsets) {
    return refusal(
        file_of(fmt::format(R"({{"a":{{"dtype":{},"shape":{},"data_offsets":{}}}}})", type, shape, offsets), "abcd"));
  };
  ASSERT_EQ(entry(R"("U8")", "[4]", "[0,4]"), "accepted");
  for (std::string_view type : {R"("u8")", R"("F8_E4M3")", R"("")", "8", "null", "[]"}) {
    EXPECT_NE(entry(type, "[4]", "[0,4]"), "accepted") << type;
  }
  for (std::string_view shape : {"4", "[4.0]", "[-4]", "[\"4\"]", "[[4]]", "null", "{}", "[3]", "[5]", "[]", "[4,0]",
                                 "[18446744073709551615]", "[9223372036854775808]", "[1e0,4]", "[true,4]"}) {
    EXPECT_NE(entry(R"("U8")", shape, "[0,4]"), "accepted") << shape;
  }
  EXPECT_THAT(entry(R"("F64")", "[4611686018427387904,4]", "[0,4]"), HasSubstr("does not fit this machine"));
  for (std::string_view offsets : {"[0,3]", "[1,5]", "[4,0]", "[0]", "[0,4,4]", "[0.0,4]", "[-1,3]", "{}", "null",
                                   "[0,18446744073709551615]", "[4,8]"}) {
    EXPECT_NE(entry(R"("U8")", "[4]", offsets), "accepted") << offsets;
  }
}

TEST(SafetensorsTest, RefusesOverlapsAndGaps) {
  const auto two = [](std::string_view first, std::string_view second) {
    return refusal(file_of(fmt::format(R"({{"a":{{"dtype":"U8","shape":[2],"data_offsets":{}}},)"
                                       R"("b":{{"dtype":"U8","shape":[2],"data_offsets":{}}}}})",
                                       first, second),
                           "abcd"));
  };
  EXPECT_EQ(two("[0,2]", "[2,4]"), "accepted");
  EXPECT_EQ(two("[2,4]", "[0,2]"), "accepted");
  EXPECT_THAT(two("[0,2]", "[0,2]"), HasSubstr("expected \"b\" to begin at byte 2, got 0"));
  EXPECT_THAT(two("[0,2]", "[1,3]"), HasSubstr("expected \"b\" to begin at byte 2, got 1"));
  EXPECT_THAT(two("[1,3]", "[3,5]"), HasSubstr("expected \"a\" to begin at byte 0, got 1"));
  EXPECT_THAT(two("[0,2]", "[3,5]"), HasSubstr("begin at byte 2, got 3"));
}

TEST(SafetensorsTest, RefusesHostileHeaders) {
  constexpr std::string_view kGood = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
  ASSERT_EQ(refusal(file_of(kGood, "abcd")), "accepted");
  EXPECT_NE(refusal(file_of(kGood, "abc")), "accepted");
  EXPECT_NE(refusal(file_of(kGood, "abcde")), "accepted");
  for (std::string_view header :
       {"", " {}", "[]", "null", "{", "{}{}", "{} x", "\xEF\xBB\xBF{}", R"({"a":1})", R"({"a":{}})",
        R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4],"more":0}})",
        R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},})", R"({"__metadata__":[]})",
        R"({"__metadata__":null})", R"({"__metadata__":{"a":1}})", R"({"__metadata__":{"a":{"b":"c"}}})"}) {
    EXPECT_NE(refusal(file_of(header, "")), "accepted") << header;
  }
  for (
      std::string_view header :
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
       R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"\u0061":{"dtype":"U8","shape":[0],"data_offsets":[4,4]}})",
       R"({"a":{"dtype":"U8","shape":[9],"shape":[4],"data_offsets":[0,4]}})",
       R"({"__metadata__":{"k":"1","k":"2"},"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})"}) {
    EXPECT_THAT(refusal(file_of(header, "abcd")), HasSubstr("expected every key once")) << header;
  }
  std::string deep = "{\"a\":";
  for (int i = 0; i < 200'000; ++i) deep += "[";
  EXPECT_THAT(refusal(file_of(deep, "")), HasSubstr("levels"));
  EXPECT_NE(refusal(std::string("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF{}", 10)), "accepted");
  EXPECT_NE(refusal(std::string("\x01\xE1\xF5\x05\0\0\0\0{}", 10)), "accepted");
}

TEST(SafetensorsTest, SurvivesEveryCutAndEveryChangedByte) {
  const std::string file = file_of(
      R"({"__metadata__":{"k":"v"},"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"BF16","shape":[],"data_offsets":[2,4]}})",
      "abcd");
  ASSERT_EQ(refusal(file), "accepted");
  for (std::size_t length = 0; length < file.size(); ++length) {
    EXPECT_NE(refusal(file.substr(0, length)), "accepted") << length;
  }
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = file;
      changed[at] = static_cast<char>(value);
      const std::string result = refusal(changed);
      EXPECT_EQ(result.find('\n'), std::string::npos) << result;
    }
  }
}

}  // namespace
}  // namespace heedful
