// Any bytes as a .safetensors: refused with an Error, or read into arrays that hold every byte after the header once.
#include <cstddef>
#include <cstdint>

#include "fuzz/check_array.h"
#include "heedful/formats/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace heedful;
  const Bytes file = std::as_bytes(std::span(data, size));
  try {
    const Safetensors contents = parse_safetensors(file, "fuzz");
    std::size_t total = 0;
    for (const auto& [name, array] : contents.arrays) {
      check_array(array);
      total += array.bytes.size();
    }
    ByteReader reader(file, "fuzz");
    reader.take(reader.take_integer(8, "header length"), "header");
    HEEDFUL_CHECK(total == reader.rest().size());
  } catch (const Error&) {
  }
  return 0;
}
