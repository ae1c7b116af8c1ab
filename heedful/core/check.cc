#include "heedful/core/check.h"

#include <cstdio>
#include <cstdlib>

namespace heedful::internal {

void check_failed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, condition);
  std::abort();
}

}  // namespace heedful::internal
