#include "heedful/report/report.h"

#include <algorithm>

namespace heedful {

bool Report::failed() const {
  return std::ranges::any_of(claims, &Claim::failed);
}

}  // namespace heedful
