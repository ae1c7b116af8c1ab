// .npz: a zip of .npy arrays, stored or deflated (NumPy's savez and savez_compressed). Reads are bounded: an archive
// that would expand past `max_bytes`, lies about a size, or holds anything but arrays throws Error. A member's name,
// less its ".npy", is only ever a key.
#ifndef HEEDFUL_FORMATS_NPZ_H_
#define HEEDFUL_FORMATS_NPZ_H_

#include <filesystem>
#include <string_view>

#include "heedful/formats/array.h"
#include "heedful/formats/bytes.h"

namespace heedful {

ArrayMap read_npz(const std::filesystem::path& path, Index max_bytes = kMaxFileBytes);
void write_npz(const std::filesystem::path& path, const ArrayMap& arrays);  // stored; temp + fsync + rename

// The same without a file, `where` naming the source in errors.
ArrayMap parse_npz(Bytes file, std::string_view where, Index max_bytes = kMaxFileBytes);

}  // namespace heedful

#endif  // HEEDFUL_FORMATS_NPZ_H_
