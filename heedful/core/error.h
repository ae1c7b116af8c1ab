// Bad input (a file, an argument, a shape) throws Error, whose text is one line:
//     [where] what: expected …, got …
// A mistake of the caller's that a test should catch goes through here; a broken invariant of our own stops in a
// HEEDFUL_CHECK (check.h). The library never prints and never exits.
#ifndef HEEDFUL_CORE_ERROR_H_
#define HEEDFUL_CORE_ERROR_H_

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace heedful {

class Error : public std::runtime_error {
 public:
  Error(std::string_view where, std::string_view what) : std::runtime_error(fmt::format("[{}] {}", where, what)) {}
};

// Throws Error unless `ok`: require(heads > 0, "config", "heads: expected at least 1, got {}", heads).
template <class... Args>
void require(bool ok, std::string_view where, fmt::format_string<Args...> format, Args&&... args) {
  if (!ok) throw Error(where, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
[[noreturn]] void fail(std::string_view where, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(where, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace heedful

#endif  // HEEDFUL_CORE_ERROR_H_
