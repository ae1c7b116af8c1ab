#include "heedful/core/view.h"

#include <fmt/format.h>

namespace heedful {

std::string extents_text(std::span<const Index> extents) {
  return fmt::format("[{}]", fmt::join(extents, ", "));
}

}  // namespace heedful
