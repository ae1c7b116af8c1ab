// .safetensors: an 8-byte little-endian header length, a JSON header {name: {dtype, shape, data_offsets}}, then the
// bytes. Offsets must cover the data exactly, without overlap or gap.
#ifndef HEEDFUL_FORMATS_SAFETENSORS_H_
#define HEEDFUL_FORMATS_SAFETENSORS_H_

#include <filesystem>
#include <map>
#include <string>

#include "heedful/formats/array.h"

namespace heedful {

struct Safetensors {
  ArrayMap arrays;
  std::map<std::string, std::string, std::less<>> metadata;  // the header's __metadata__
};

Safetensors read_safetensors(const std::filesystem::path& path);
void write_safetensors(const std::filesystem::path& path, const Safetensors& contents);  // temp + fsync + rename

}  // namespace heedful

#endif  // HEEDFUL_FORMATS_SAFETENSORS_H_
