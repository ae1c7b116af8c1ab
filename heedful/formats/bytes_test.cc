#include "heedful/formats/bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <string>

#include "heedful/core/error.h"
#include "heedful/formats/test_files.h"

namespace heedful {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string text_of(const fs::path& path) {
  const std::vector<std::byte> bytes = read_file(path);
  return std::string(as_text(bytes));
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::size_t entries_in(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(BytesTest, WritesAndReadsBack) {
  const TemporaryFolder folder;
  const fs::path path = folder / "file";
  write_file(path, "");
  EXPECT_EQ(text_of(path), "");
  const std::array<Bytes, 3> parts{as_bytes("one "), as_bytes(""), as_bytes(std::string_view("t\0o", 3))};
  write_file(path, parts);
  EXPECT_EQ(text_of(path), std::string("one t\0o", 7));
  const std::string large(3'000'001, 'x');  // several chunks and one byte
  write_file(path, large);
  EXPECT_EQ(text_of(path), large);
  EXPECT_EQ(entries_in(folder.path()), 1u);
}

TEST(BytesTest, WritesToANameOfTheWorkingFolder) {
  const TemporaryFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  write_file("bare", "text");
  fs::current_path(before);
  EXPECT_EQ(text_of(folder / "bare"), "text");
}

TEST(BytesTest, ReadsAreBounded) {
  const TemporaryFolder folder;
  const fs::path path = folder / "file";
  write_file(path, "12345678");
  EXPECT_EQ(read_file(path, 8).size(), 8u);
  EXPECT_THAT(message_of([&] { read_file(path, 7); }), HasSubstr("size: expected at most 7 bytes, got 8"));
  EXPECT_THAT(message_of([&] { read_file("/dev/zero", 1000); }), HasSubstr("expected at most 1000 bytes, got more"));
  EXPECT_TRUE(read_file("/dev/null", 0).empty());
}

TEST(BytesTest, SaysWhyAReadFails) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of([&] { read_file(folder / "absent"); }), HasSubstr("absent] cannot open: No such file"));
  EXPECT_THAT(message_of([&] { read_file(folder.path()); }), HasSubstr("Is a directory"));
}

TEST(BytesTest, AFullDiskLosesNothing) {
  const TemporaryFolder folder;
  const fs::path path = folder / "file";
  write_file(path, "the old contents");
  {
    const FileSizeLimit limit(4096);
    EXPECT_THAT(message_of([&] { write_file(path, std::string(10'000, 'x')); }), HasSubstr("file] cannot write: "));
  }
  EXPECT_EQ(text_of(path), "the old contents");
  EXPECT_EQ(entries_in(folder.path()), 1u);
}

TEST(BytesTest, AWriterThatFailsLosesNothing) {
  const TemporaryFolder folder;
  const fs::path path = folder / "file";
  write_file(path, "the old contents");
  const auto failing = [](const fs::path& temporary) {
    EXPECT_TRUE(fs::exists(temporary));
    fail("writer", "gave up");
  };
  EXPECT_THAT(message_of([&] { replace_file(path, failing); }), HasSubstr("gave up"));
  EXPECT_EQ(text_of(path), "the old contents");
  EXPECT_EQ(entries_in(folder.path()), 1u);
}

TEST(BytesTest, AsksWhetherAPlaceIsWritableAndLeavesItAlone) {
  const TemporaryFolder folder;
  write_file(folder / "file", "the old contents");
  require_writable(folder / "file");
  require_writable(folder / "new");
  EXPECT_EQ(text_of(folder / "file"), "the old contents");
  EXPECT_EQ(entries_in(folder.path()), 1u);
  EXPECT_THAT(message_of([&] { require_writable(folder / "absent/file"); }), HasSubstr("No such file or directory"));
  EXPECT_THAT(message_of([&] { require_writable(folder.path()); }), HasSubstr("got a directory"));
}

TEST(BytesTest, SaysWhyAPlaceIsNotWritable) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of([&] { write_file(folder / "absent/file", "x"); }),
              HasSubstr("absent/file] cannot write: No such file or directory"));
  EXPECT_THAT(message_of([&] { write_file(folder.path(), "x"); }), HasSubstr("got a directory"));
  EXPECT_THAT(message_of([] { write_file("/dev/null", "x"); }), HasSubstr("something that is not a file"));
  if (::geteuid() == 0) GTEST_SKIP() << "permissions do not bind the superuser";
  write_file(folder / "protected", "old");
  fs::permissions(folder / "protected", fs::perms::owner_read);
  EXPECT_THAT(message_of([&] { write_file(folder / "protected", "x"); }), HasSubstr("Permission denied"));
  EXPECT_EQ(text_of(folder / "protected"), "old");
}

TEST(BytesTest, KeepsPermissionsAndLinks) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "place");
  write_file(folder / "place/file", "old");
  fs::permissions(folder / "place/file", fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("place/file", folder / "link");
  fs::create_symlink("link", folder / "link_to_link");
  write_file(folder / "link_to_link", "new");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_TRUE(fs::is_symlink(folder / "link_to_link"));
  EXPECT_EQ(text_of(folder / "place/file"), "new");
  EXPECT_EQ(fs::status(folder / "place/file").permissions(), fs::perms::owner_read | fs::perms::owner_write);

  fs::create_symlink("round", folder / "round");
  EXPECT_THAT(message_of([&] { write_file(folder / "round", "x"); }), HasSubstr("too many symbolic links"));
}

TEST(ByteReaderTest, TakesWhatIsThereAndNoMore) {
  const std::string_view text(
      "\x01\x02\xFF\x00\x00\x00\x00\x00\x00\x80"
      "end",
      13);
  ByteReader reader(as_bytes(text), "source");
  EXPECT_EQ(reader.take_integer(2, "first"), 0x0201u);
  EXPECT_EQ(reader.take_integer(8, "second"), 0x80000000000000FFu);
  EXPECT_EQ(as_text(reader.rest()), "end");
  EXPECT_EQ(message_of([&] { reader.take(4, "third"); }), "[source] third: expected 4 bytes, got 3");
  EXPECT_EQ(message_of([&] { reader.take(~std::uint64_t{0}, "third"); }),
            "[source] third: expected 18446744073709551615 bytes, got 3");
  EXPECT_EQ(as_text(reader.take(3, "third")), "end");
  EXPECT_TRUE(reader.take(0, "nothing").empty());
}

TEST(ShownTest, FitsOneLine) {
  EXPECT_EQ(shown("a\nb\x1b"), "\"a\\x0ab\\x1b\"");
  EXPECT_EQ(shown(std::string(100, 'n')), "\"" + std::string(60, 'n') + "…\"");
}

}  // namespace
}  // namespace heedful
