// The names of an enum's values, as they stand in files and on the command line: one constant table an enum.
//
//     inline constexpr EnumName<Norm> kNormNames[] = {{Norm::layer, "layer"}, {Norm::rms, "rms"}};
#ifndef HEEDFUL_CORE_ENUM_NAMES_H_
#define HEEDFUL_CORE_ENUM_NAMES_H_

#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "heedful/core/error.h"

namespace heedful {

template <class Enum>
struct EnumName {
  Enum value;
  std::string_view name;
};

template <class Enum>
std::string_view enum_name(Enum value, std::type_identity_t<std::span<const EnumName<Enum>>> names) {
  for (const auto& entry : names) {
    if (entry.value == value) return entry.name;
  }
  fail("enum", "no name for value {}", static_cast<int>(value));
}

template <class Enum>
std::string enum_choices(std::span<const EnumName<Enum>> names) {
  std::string text;
  for (const auto& entry : names) {
    if (!text.empty()) text += '|';
    text += entry.name;
  }
  return text;
}

template <class Enum>
Enum enum_value(std::string_view text, std::string_view where, std::string_view key,
                std::type_identity_t<std::span<const EnumName<Enum>>> names) {
  for (const auto& entry : names) {
    if (entry.name == text) return entry.value;
  }
  fail(where, "{}: expected {}, got \"{}\"", key, enum_choices<Enum>(names), text);
}

}  // namespace heedful

#endif  // HEEDFUL_CORE_ENUM_NAMES_H_
