// Any bytes as a .npy: refused with an Error, or read into an array that is written and read back the same.
#include <cstddef>
#include <cstdint>

#include "fuzz/check_array.h"
#include "heedful/formats/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace heedful;
  const Bytes file = std::as_bytes(std::span(data, size));
  try {
    const Array array = parse_npy({file.begin(), file.end()}, "fuzz");
    check_array(array);
    const std::string preamble = npy_preamble(array, "fuzz");
    std::vector<std::byte> written(as_bytes(preamble).begin(), as_bytes(preamble).end());
    written.insert(written.end(), array.bytes.begin(), array.bytes.end());
    const Array back = parse_npy(std::move(written), "fuzz");
    HEEDFUL_CHECK(back.type == array.type && back.shape == array.shape && back.bytes == array.bytes);
  } catch (const Error&) {
  }
  return 0;
}
