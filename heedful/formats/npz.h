// .npz: a zip of .npy arrays, stored or deflated (NumPy's savez and savez_compressed). Reads are bounded: an archive
// that would expand past `max_bytes`, lies about a size, or holds anything but arrays throws Error.
#ifndef HEEDFUL_FORMATS_NPZ_H_
#define HEEDFUL_FORMATS_NPZ_H_

#include <filesystem>

#include "heedful/formats/array.h"

namespace heedful {

inline constexpr Index kMaxFileBytes = Index{1} << 32;  // 4 GiB

ArrayMap read_npz(const std::filesystem::path& path, Index max_bytes = kMaxFileBytes);
void write_npz(const std::filesystem::path& path, const ArrayMap& arrays);  // temp + fsync + rename

}  // namespace heedful

#endif  // HEEDFUL_FORMATS_NPZ_H_
