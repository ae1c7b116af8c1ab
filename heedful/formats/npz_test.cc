#include "heedful/formats/npz.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zip.h>

#include <cstring>
#include <fstream>

#include "heedful/core/error.h"
#include "heedful/formats/npy.h"
#include "heedful/formats/test_files.h"

namespace heedful {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

Array numbers(Index count) {
  Tensor<double, 1> tensor({count});
  for (Index i = 0; i < count; ++i) tensor(i) = static_cast<double>(i) / 3;
  return to_array(tensor);
}

std::string npy_text(const Array& array) {
  return npy_preamble(array, "x") + std::string(as_text(array.bytes));
}

struct Member {
  std::string name, contents;
  int method = ZIP_CM_STORE;
};

// An archive as others may write it, by libzip itself.
std::vector<std::byte> archive_of(const std::vector<Member>& members) {
  const TemporaryFolder folder;
  const fs::path path = folder / "archive.zip";
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
  for (const Member& member : members) {
    zip_source_t* source = zip_source_buffer(archive, member.contents.data(), member.contents.size(), 0);
    const zip_int64_t index = zip_file_add(archive, member.name.c_str(), source, 0);
    zip_set_file_compression(archive, static_cast<zip_uint64_t>(index), member.method, 0);
  }
  EXPECT_EQ(zip_close(archive), 0);
  return read_file(path);
}

std::string refusal(Bytes file, Index max_bytes = kMaxFileBytes) {
  try {
    parse_npz(file, "x", max_bytes);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

// Where the one member's central record begins: "PK\1\2".
std::size_t central_record(Bytes file) {
  return as_text(file).find("PK\1\2");
}

template <class T>
void set(std::vector<std::byte>& file, std::size_t position, T value) {
  std::memcpy(file.data() + position, &value, sizeof(value));
}

TEST(NpzTest, ArraysComeBack) {
  const TemporaryFolder folder;
  ArrayMap arrays;
  arrays["weight"] = numbers(100'000);  // crosses the chunks of the reader
  arrays["block.0/bias"] = numbers(0);
  arrays["schön"] = {DataType::f16, {1, 2}, std::vector<std::byte>(4, std::byte{0x3C})};
  arrays["../escape"] = {DataType::boolean, {}, {std::byte{1}}};
  write_npz(folder / "arrays.npz", arrays);
  const ArrayMap back = read_npz(folder / "arrays.npz");
  ASSERT_EQ(back.size(), arrays.size());
  for (const auto& [name, array] : arrays) {
    EXPECT_EQ(at(back, name).type, array.type) << name;
    EXPECT_EQ(at(back, name).shape, array.shape) << name;
    EXPECT_EQ(at(back, name).bytes, array.bytes) << name;
  }
  // Reading created nothing, and the same arrays give the same file.
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
  const std::vector<std::byte> first = read_file(folder / "arrays.npz");
  write_npz(folder / "arrays.npz", arrays);
  EXPECT_EQ(read_file(folder / "arrays.npz"), first);

  write_npz(folder / "arrays.npz", {});
  EXPECT_TRUE(read_npz(folder / "arrays.npz").empty());
}

TEST(NpzTest, ReadsDeflatedMembers) {
  const std::vector<std::byte> file =
      archive_of({{"a.npy", npy_text(numbers(5000)), ZIP_CM_DEFLATE}, {"b.npy", npy_text(numbers(3))}});
  const ArrayMap arrays = parse_npz(file, "x");
  EXPECT_EQ(at(arrays, "a").bytes, numbers(5000).bytes);
  EXPECT_EQ(at(arrays, "b").bytes, numbers(3).bytes);
}

TEST(NpzTest, RefusesWhatIsNoArchiveOfArrays) {
  EXPECT_NE(refusal(as_bytes("")), "accepted");
  EXPECT_NE(refusal(as_bytes("no zip at all, but longer than any end record")), "accepted");
  EXPECT_THAT(refusal(archive_of({{"notes.txt", "text"}})),
              HasSubstr("expected only .npy arrays, got \"notes.txt\""));
  EXPECT_THAT(refusal(archive_of({{".npy", npy_text(numbers(1))}})), HasSubstr("expected only .npy arrays"));
  EXPECT_THAT(refusal(archive_of({{"a.npy", "text"}})), HasSubstr("[x: \"a.npy\"] npy magic"));
  EXPECT_THAT(refusal(archive_of({{"a.npy", npy_text(numbers(4)) + "more"}})), HasSubstr("expected 32 bytes"));
  const TemporaryFolder folder;
  EXPECT_THROW(read_npz(folder / "absent.npz"), Error);
  EXPECT_THROW(read_npz(folder.path()), Error);
}

TEST(NpzTest, RefusesTheSameNameTwice) {
  std::vector<std::byte> file = archive_of({{"a.npy", npy_text(numbers(1))}, {"b.npy", npy_text(numbers(1))}});
  for (std::size_t at = 0; at + 5 <= file.size(); ++at) {
    if (as_text(file).substr(at, 5) == "b.npy") file[at] = std::byte{'a'};
  }
  EXPECT_THAT(refusal(file), HasSubstr("expected every name once, got \"a\" twice"));
}

TEST(NpzTest, ExpandsNoFurtherThanAllowed) {
  const std::string zeros = npy_text(to_array(Tensor<double, 1>({1'000'000})));
  const std::vector<std::byte> file = archive_of({{"a.npy", zeros, ZIP_CM_DEFLATE}});
  ASSERT_LT(file.size(), 20'000u);
  EXPECT_EQ(refusal(file), "accepted");
  EXPECT_EQ(refusal(file, static_cast<Index>(zeros.size())), "accepted");
  EXPECT_THAT(refusal(file, static_cast<Index>(zeros.size()) - 1), HasSubstr("expected at most"));
  const std::vector<std::byte> two = archive_of({{"a.npy", zeros, ZIP_CM_DEFLATE}, {"b.npy", zeros, ZIP_CM_DEFLATE}});
  EXPECT_THAT(refusal(two, static_cast<Index>(2 * zeros.size()) - 1), HasSubstr("\"b.npy\"] size: expected at most"));
}

TEST(NpzTest, RefusesLies) {
  const std::string contents = npy_text(numbers(50));
  const auto size = static_cast<std::uint32_t>(contents.size());
  for (int method : {ZIP_CM_STORE, ZIP_CM_DEFLATE}) {
    const std::vector<std::byte> good = archive_of({{"a.npy", contents, method}});
    const std::size_t central = central_record(good);
    ASSERT_EQ(refusal(good), "accepted");
    const auto changed = [&](auto change) {
      std::vector<std::byte> file = good;
      change(file);
      return refusal(file);
    };
    for (std::uint32_t claim : {0u, 1u, size - 1, size + 1, 0xFFFF'FFFEu}) {  // the size once expanded
      EXPECT_NE(changed([&](auto& file) { set(file, central + 24, claim); }), "accepted") << method << " " << claim;
    }
    EXPECT_NE(changed([&](auto& file) { set(file, central + 16, 0x12345678u); }), "accepted");      // the checksum
    EXPECT_NE(changed([&](auto& file) { set(file, central + 20, 3u); }), "accepted");               // the size stored
    EXPECT_NE(changed([&](auto& file) { set(file, central + 42, 0x7FFF'FFFFu); }), "accepted");     // where it begins
    EXPECT_NE(changed([&](auto& file) { set(file, central + 8, std::uint16_t{1}); }), "accepted");  // encrypted
    EXPECT_THAT(changed([&](auto& file) { set(file, central + 10, std::uint16_t{12}); }), HasSubstr("method 12"));
    EXPECT_NE(changed([&](auto& file) { file[central - 20] ^= std::byte{1}; }), "accepted");  // a bit of the data
  }
}

TEST(NpzTest, SurvivesEveryCutAndManyChangedBytes) {
  const std::vector<std::byte> file =
      archive_of({{"a.npy", npy_text(numbers(2)), ZIP_CM_DEFLATE}, {"b.npy", npy_text(numbers(1))}});
  for (std::size_t length = 0; length < file.size(); ++length) {
    EXPECT_NE(refusal(Bytes(file).first(length)), "accepted") << length;
  }
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::vector<std::byte> changed = file;
      changed[at] ^= static_cast<std::byte>(1 << bit);
      const std::string result = refusal(changed, 1 << 20);
      EXPECT_EQ(result.find('\n'), std::string::npos) << result;
    }
  }
}

TEST(NpzTest, AFailedWriteLosesNothing) {
  const TemporaryFolder folder;
  const fs::path path = folder / "arrays.npz";
  write_npz(path, {{"old", numbers(3)}});
  EXPECT_THROW(write_npz(path, {{"b", {DataType::bf16, {1}, std::vector<std::byte>(2)}}}), Error);
  EXPECT_THROW(write_npz(path, {{"", numbers(3)}}), Error);
  EXPECT_THROW(write_npz(path, {{std::string("a\0b", 3), numbers(3)}}), Error);
  EXPECT_THROW(write_npz(path, {{"\xFF\xFE", numbers(3)}}), Error);
  try {
    const FileSizeLimit limit(4096);
    write_npz(path, {{"large", numbers(10'000)}});
    ADD_FAILURE() << "wrote past the limit";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("arrays.npz] cannot write: "));
    EXPECT_THAT(error.what(), Not(HasSubstr("No error")));
  }
  EXPECT_EQ(at(read_npz(path), "old").size(), 3);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace heedful
