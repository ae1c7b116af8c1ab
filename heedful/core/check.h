// HEEDFUL_CHECK(condition): an invariant of our own. When it is false the program is wrong, not its input, so it
// stops at once with the place. On in every build; keep it out of inner loops.
#ifndef HEEDFUL_CORE_CHECK_H_
#define HEEDFUL_CORE_CHECK_H_

namespace heedful::internal {
[[noreturn]] void check_failed(const char* file, int line, const char* condition);
}  // namespace heedful::internal

#define HEEDFUL_CHECK(condition) \
  (static_cast<bool>(condition) ? void(0) : ::heedful::internal::check_failed(__FILE__, __LINE__, #condition))

#endif  // HEEDFUL_CORE_CHECK_H_
