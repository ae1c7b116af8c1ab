#include "heedful/formats/bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "heedful/core/error.h"

namespace heedful {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

[[noreturn]] void fail_with_errno(const fs::path& path, std::string_view action) {
  const std::string reason = std::generic_category().message(errno);
  fail(path.string(), "cannot {}: {}", action, reason);
}

class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  ~Descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  bool is_open() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }
  int close() { return ::close(std::exchange(descriptor_, -1)); }  // some file systems report a full disk only here

 private:
  int descriptor_;
};

// Calls a system call until no signal interrupts it.
template <class Call>
auto uninterrupted(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

int open_uninterrupted(const fs::path& path, int flags, mode_t mode = 0) {
  return uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); });
}

// A file that removes itself unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const fs::path& target) : target_(target) {
    static std::atomic<unsigned> count{0};
    for (;;) {
      path_ = target.parent_path() / fmt::format(".heedful-{}-{}.tmp", ::getpid(), count++);
      Descriptor file(open_uninterrupted(path_, O_WRONLY | O_CREAT | O_EXCL, 0666));
      if (file.is_open()) break;
      if (errno != EEXIST) fail_with_errno(target, "write");
    }
  }
  ~TemporaryFile() {
    if (!renamed_) ::unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const fs::path& path() const { return path_; }

  void rename_to_target() {
    Descriptor file(open_uninterrupted(path_, O_WRONLY));
    if (!file.is_open()) fail_with_errno(target_, "write");
    struct stat old;
    if (::stat(target_.c_str(), &old) == 0 && ::fchmod(file.get(), old.st_mode & 07777) != 0) {
      fail_with_errno(target_, "keep its permissions");
    }
    if (::fsync(file.get()) != 0 || file.close() != 0) fail_with_errno(target_, "write");
    if (::rename(path_.c_str(), target_.c_str()) != 0) fail_with_errno(target_, "replace");
    renamed_ = true;
    // The new name is on the disk once its directory is. Not every file system lets a directory be synced; the file
    // itself is complete either way.
    const fs::path parent = target_.parent_path();
    Descriptor directory(open_uninterrupted(parent.empty() ? "." : parent, O_RDONLY | O_DIRECTORY));
    if (directory.is_open()) ::fsync(directory.get());
  }

 private:
  fs::path target_, path_;
  bool renamed_ = false;
};

// Where the bytes are to go: behind a symbolic link, so that the link stays; refused where a rename would take the
// place of a device, a pipe or a directory, or of a file that was protected from writing.
fs::path checked_target(const fs::path& path) {
  std::error_code error;
  fs::path target = path;
  for (int links = 0; fs::is_symlink(target, error); ++links) {
    require(links < 32, path.string(), "cannot write: too many symbolic links");
    const fs::path next = fs::read_symlink(target, error);
    require(!error, path.string(), "cannot write: {}", error.message());
    target = target.parent_path() / next;
  }
  const fs::file_status status = fs::status(target, error);
  if (fs::exists(status)) {
    require(fs::is_regular_file(status), path.string(), "cannot write: expected a file or a new name, got {}",
            fs::is_directory(status) ? "a directory" : "something that is not a file");
    if (::access(target.c_str(), W_OK) != 0) fail_with_errno(path, "write");
  }
  return target;
}

}  // namespace

std::vector<std::byte> read_file(const fs::path& path, Index max_bytes) {
  const Descriptor file(open_uninterrupted(path, O_RDONLY));
  if (!file.is_open()) fail_with_errno(path, "open");
  struct stat status;
  if (::fstat(file.get(), &status) != 0) fail_with_errno(path, "read");
  const bool regular = S_ISREG(status.st_mode);
  require(!regular || status.st_size <= max_bytes, path.string(), "size: expected at most {} bytes, got {}",
          max_bytes, status.st_size);

  // Read to the end whatever the size was: a pipe has none, and a file may grow.
  std::vector<std::byte> bytes;
  if (regular) bytes.reserve(static_cast<std::size_t>(status.st_size) + 1);
  for (;;) {
    const std::size_t filled = bytes.size();
    require(std::cmp_less_equal(filled, max_bytes), path.string(), "size: expected at most {} bytes, got more",
            max_bytes);
    const std::size_t room = bytes.capacity() - filled;
    bytes.resize(filled + std::clamp<std::size_t>(room, 1, kChunkBytes));
    const ssize_t count =
        uninterrupted([&] { return ::read(file.get(), bytes.data() + filled, bytes.size() - filled); });
    if (count < 0) fail_with_errno(path, "read");
    bytes.resize(filled + static_cast<std::size_t>(count));
    if (count == 0) return bytes;
  }
}

Bytes ByteReader::take(std::uint64_t count, std::string_view what) {
  require(count <= rest_.size(), where_, "{}: expected {} bytes, got {}", what, count, rest_.size());
  const Bytes taken = rest_.first(static_cast<std::size_t>(count));
  rest_ = rest_.subspan(taken.size());
  return taken;
}

std::uint64_t ByteReader::take_integer(int bytes, std::string_view what) {
  std::uint64_t value = 0;
  const Bytes taken = take(static_cast<std::uint64_t>(bytes), what);
  std::memcpy(&value, taken.data(), taken.size());
  return value;
}

std::string shown(std::string_view text) {
  constexpr std::size_t kMaxShown = 60;
  std::string result = "\"";
  for (char c : text.substr(0, kMaxShown)) {
    const auto code = static_cast<unsigned char>(c);
    result += code < ' ' || code == 0x7F ? fmt::format("\\x{:02x}", code) : std::string(1, c);
  }
  return result + (text.size() > kMaxShown ? "…\"" : "\"");
}

void require_writable(const fs::path& path) {
  const TemporaryFile temporary(checked_target(path));
}

void replace_file(const fs::path& path, const std::function<void(const fs::path& temporary)>& write) {
  TemporaryFile temporary(checked_target(path));
  write(temporary.path());
  temporary.rename_to_target();
}

void write_file(const fs::path& path, std::span<const Bytes> parts) {
  replace_file(path, [&](const fs::path& temporary) {
    Descriptor file(open_uninterrupted(temporary, O_WRONLY));
    if (!file.is_open()) fail_with_errno(path, "write");
    for (Bytes rest : parts) {
      while (!rest.empty()) {
        const ssize_t count = uninterrupted([&] { return ::write(file.get(), rest.data(), rest.size()); });
        if (count < 0) fail_with_errno(path, "write");
        rest = rest.subspan(static_cast<std::size_t>(count));
      }
    }
    if (file.close() != 0) fail_with_errno(path, "write");
  });
}

void write_file(const fs::path& path, std::string_view text) {
  const Bytes bytes = as_bytes(text);
  write_file(path, std::span(&bytes, 1));
}

}  // namespace heedful
