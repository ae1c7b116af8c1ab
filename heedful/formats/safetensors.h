// .safetensors: an 8-byte little-endian header length, a JSON header {name: {dtype, shape, data_offsets}}, then the
// bytes. Offsets must cover the data exactly, without overlap or gap, and no name or key may stand twice.
#ifndef HEEDFUL_FORMATS_SAFETENSORS_H_
#define HEEDFUL_FORMATS_SAFETENSORS_H_

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "heedful/formats/array.h"
#include "heedful/formats/bytes.h"

namespace heedful {

struct Safetensors {
  ArrayMap arrays;
  std::map<std::string, std::string, std::less<>> metadata;  // the header's __metadata__
};

Safetensors read_safetensors(const std::filesystem::path& path, Index max_bytes = kMaxFileBytes);
void write_safetensors(const std::filesystem::path& path, const Safetensors& contents);  // temp + fsync + rename

// The same without a file, `where` naming the source in errors.
Safetensors parse_safetensors(Bytes file, std::string_view where);

}  // namespace heedful

#endif  // HEEDFUL_FORMATS_SAFETENSORS_H_
