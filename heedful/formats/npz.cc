#include "heedful/formats/npz.h"

#include <zip.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "heedful/core/error.h"
#include "heedful/formats/npy.h"

namespace heedful {
namespace {

constexpr std::string_view kSuffix = ".npy";
constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

struct CloseArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct CloseMember {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};
using Archive = std::unique_ptr<zip_t, CloseArchive>;
using Member = std::unique_ptr<zip_file_t, CloseMember>;

// Takes the source over, whether it succeeds or not.
Archive open_archive(zip_source_t* source, int flags, std::string_view where) {
  require(source != nullptr, where, "zip: out of memory");
  zip_error_t error;
  zip_error_init(&error);
  Archive archive(zip_open_from_source(source, flags, &error));
  const std::string reason = archive ? "" : zip_error_strerror(&error);
  zip_error_fini(&error);
  if (!archive) {
    zip_source_free(source);
    fail(where, "zip: expected a readable archive, got: {}", reason);
  }
  return archive;
}

// Reads what is really there, a chunk at a time, so that a size that is a lie costs no memory; asking for one byte
// more than the size makes libzip compare the checksum.
std::vector<std::byte> read_member(zip_t* archive, zip_uint64_t index, std::uint64_t size, std::string_view where) {
  const Member member(zip_fopen_index(archive, index, 0));
  require(member != nullptr, where, "zip: cannot open: {}", zip_strerror(archive));
  std::vector<std::byte> bytes;
  for (;;) {
    const std::size_t filled = bytes.size();
    const std::size_t chunk = std::min<std::size_t>(kChunkBytes, static_cast<std::size_t>(size - filled) + 1);
    if (bytes.capacity() < filled + chunk) bytes.reserve(std::max(filled + chunk, 2 * filled));
    bytes.resize(filled + chunk);
    const zip_int64_t count = zip_fread(member.get(), bytes.data() + filled, chunk);
    require(count >= 0, where, "zip: cannot read: {}", zip_file_strerror(member.get()));
    bytes.resize(filled + static_cast<std::size_t>(count));
    require(bytes.size() <= size, where, "zip: expected {} bytes, got more", size);
    if (count == 0) break;
  }
  require(bytes.size() == size, where, "zip: expected {} bytes, got {}", size, bytes.size());
  return bytes;
}

// libzip takes a file of no bytes for an archive of no members; here it is a file cut short.
void refuse_empty(zip_source_t* source, std::string_view where) {
  zip_stat_t facts;
  if (source == nullptr || zip_source_stat(source, &facts) != 0) return;  // opening it will say why
  const bool empty = (facts.valid & ZIP_STAT_SIZE) != 0 && facts.size == 0;
  if (empty) zip_source_free(source);
  require(!empty, where, "zip: expected an archive, got an empty file");
}

ArrayMap read_archive(zip_source_t* source, std::string_view where, Index max_bytes) {
  refuse_empty(source, where);
  const Archive owner = open_archive(source, ZIP_RDONLY, where);
  zip_t* archive = owner.get();
  ArrayMap arrays;
  std::uint64_t bytes_left = static_cast<std::uint64_t>(max_bytes);
  const auto count = static_cast<zip_uint64_t>(zip_get_num_entries(archive, 0));
  for (zip_uint64_t index = 0; index < count; ++index) {
    zip_stat_t facts;
    zip_stat_init(&facts);
    const bool found = zip_stat_index(archive, index, 0, &facts) == 0;
    require(found, where, "zip: member {}: {}", index, zip_strerror(archive));
    constexpr zip_uint64_t kNeeded = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_METHOD;
    require((facts.valid & kNeeded) == kNeeded, where, "zip: member {}: no name, size or method", index);
    const std::string_view member = facts.name;
    const std::string member_where = fmt::format("{}: {}", where, shown(member));
    require(member.size() > kSuffix.size() && member.ends_with(kSuffix), where,
            "zip: expected only .npy arrays, got {}", shown(member));
    require(facts.comp_method == ZIP_CM_STORE || facts.comp_method == ZIP_CM_DEFLATE, member_where,
            "zip: expected a stored or deflated member, got method {}", facts.comp_method);
    require(facts.size <= bytes_left, member_where, "size: expected at most {} bytes in the archive, got more",
            max_bytes);
    bytes_left -= facts.size;

    Array array = parse_npy(read_member(archive, index, facts.size, member_where), member_where);
    const std::string_view key = member.substr(0, member.size() - kSuffix.size());
    require(arrays.emplace(key, std::move(array)).second, where, "zip: expected every name once, got {} twice",
            shown(key));
  }
  return arrays;
}

void add_member(zip_t* archive, const std::string& name, const zip_buffer_fragment_t (&parts)[2],
                std::string_view where) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_fragment_create(parts, 2, 0, &error);
  require(source != nullptr, where, "zip: out of memory");
  const zip_int64_t index = zip_file_add(archive, (name + std::string(kSuffix)).c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    fail(where, "zip: cannot add {}: {}", shown(name), zip_strerror(archive));
  }
  // The same arrays give the same file: no compressor's choices, no clock.
  const auto added = static_cast<zip_uint64_t>(index);
  const bool plain = zip_set_file_compression(archive, added, ZIP_CM_STORE, 0) == 0 &&
                     zip_file_set_dostime(archive, added, 0, 0x21, 0) == 0;  // 1 January 1980
  require(plain, where, "zip: cannot add {}: {}", shown(name), zip_strerror(archive));
}

}  // namespace

ArrayMap parse_npz(Bytes file, std::string_view where, Index max_bytes) {
  return read_archive(zip_source_buffer_create(file.data(), file.size(), 0, nullptr), where, max_bytes);
}

ArrayMap read_npz(const std::filesystem::path& path, Index max_bytes) {
  return read_archive(zip_source_file_create(path.c_str(), 0, -1, nullptr), path.string(), max_bytes);
}

void write_npz(const std::filesystem::path& path, const ArrayMap& arrays) {
  const std::string where = path.string();
  if (arrays.empty()) {  // libzip writes no archive without members: this is its end record
    write_file(path, std::string_view("PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22));
    return;
  }
  std::vector<std::string> preambles;
  preambles.reserve(arrays.size());  // libzip keeps the pointers until it writes
  for (const auto& [name, array] : arrays)
    preambles.push_back(npy_preamble(array, fmt::format("{}: {}", where, shown(name))));

  replace_file(path, [&](const std::filesystem::path& temporary) {
    zip_source_t* target = zip_source_file_create(temporary.c_str(), 0, -1, nullptr);
    Archive archive = open_archive(target, ZIP_CREATE | ZIP_TRUNCATE, where);
    auto preamble = preambles.begin();
    for (const auto& [name, array] : arrays) {
      require(!name.empty() && name.find('\0') == std::string::npos, where,
              "name: expected at least one character and no NUL");
      // libzip takes pointers to bytes it does not write to.
      const zip_buffer_fragment_t parts[2] = {
          {reinterpret_cast<zip_uint8_t*>(preamble->data()), preamble->size()},
          {reinterpret_cast<zip_uint8_t*>(const_cast<std::byte*>(array.bytes.data())), array.bytes.size()}};
      add_member(archive.get(), name, parts, where);
      ++preamble;
    }
    const bool written = zip_close(archive.get()) == 0;
    require(written, where, "cannot write: {}", zip_strerror(archive.get()));
    archive.release();  // NOLINT(bugprone-unused-return-value): zip_close freed it
  });
}

}  // namespace heedful
