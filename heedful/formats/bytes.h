// Whole files in and out. Reads are bounded; writes replace a file whole or leave it as it was: the bytes go to a new
// file beside it, reach the disk (fsync), and only then take its name.
#ifndef HEEDFUL_FORMATS_BYTES_H_
#define HEEDFUL_FORMATS_BYTES_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heedful/core/view.h"

namespace heedful {

static_assert(std::endian::native == std::endian::little, "every format here is little-endian and read in place");

using Bytes = std::span<const std::byte>;

inline constexpr Index kMaxFileBytes = Index{1} << 32;  // 4 GiB

// Throws Error where the file cannot be read or holds more than max_bytes.
std::vector<std::byte> read_file(const std::filesystem::path& path, Index max_bytes = kMaxFileBytes);

// Walks over bytes that someone else wrote; what is not there throws Error(where).
class ByteReader {
 public:
  ByteReader(Bytes bytes, std::string where) : rest_(bytes), where_(std::move(where)) {}

  Bytes take(std::uint64_t count, std::string_view what);
  std::uint64_t take_integer(int bytes, std::string_view what);  // unsigned, little-endian, 1 to 8 bytes
  Bytes rest() const { return rest_; }

 private:
  Bytes rest_;
  std::string where_;
};

inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline Bytes as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// A name or a text out of a file, in quotes and fit for one line of an error: cut short, control characters as \xNN.
std::string shown(std::string_view text);

// Writes the parts one after the other. Throws Error, the old file untouched and nothing left behind, where the disk
// is full, the place is not writable, or the name belongs to something other than a file.
void write_file(const std::filesystem::path& path, std::span<const Bytes> parts);
void write_file(const std::filesystem::path& path, std::string_view text);

// Throws the Error that writing there would throw, as far as that can be known without writing: for programs that work
// long before they write.
void require_writable(const std::filesystem::path& path);

// The same as write_file for a writer that wants a name to write to.
void replace_file(const std::filesystem::path& path,
                  const std::function<void(const std::filesystem::path& temporary)>& write);

}  // namespace heedful

#endif  // HEEDFUL_FORMATS_BYTES_H_
