// Any bytes as a .npz: refused with an Error, or read into arrays within the limit.
#include <cstddef>
#include <cstdint>

#include "fuzz/check_array.h"
#include "heedful/formats/npz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace heedful;
  constexpr Index kMaxBytes = Index{1} << 20;
  try {
    Index total = 0;
    for (const auto& [name, array] : parse_npz(std::as_bytes(std::span(data, size)), "fuzz", kMaxBytes)) {
      check_array(array);
      total += static_cast<Index>(array.bytes.size());
    }
    HEEDFUL_CHECK(total <= kMaxBytes);
  } catch (const Error&) {
  }
  return 0;
}
