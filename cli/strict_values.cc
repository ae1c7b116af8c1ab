#include "cli/strict_values.h"

#include <charconv>
#include <cstdint>
#include <string>
#include <system_error>

namespace heedful::cli {
namespace {

template <class Number>
bool is_a(const std::string& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool has_leading_zero(const std::string& text) {
  const std::size_t digits = text.starts_with('-') ? 1 : 0;
  return text.size() > digits + 1 && text[digits] == '0';
}

std::string refusal(const char* expected, const std::string& text) {
  return std::string("expected ") + expected + ", got \"" + text + "\"";
}

std::string check_whole(const std::string& text) {
  return is_a<std::int64_t>(text) && !has_leading_zero(text) ? "" : refusal("a whole number below 2^63", text);
}
std::string check_unsigned(const std::string& text) {
  return is_a<std::uint64_t>(text) && !has_leading_zero(text) ? ""
                                                              : refusal("a whole number from 0 below 2^64", text);
}
std::string check_number(const std::string& text) {
  return is_a<double>(text) ? "" : refusal("a number", text);
}
std::string check_text(const std::string& text) {
  return text.empty() ? refusal("a value", text) : "";
}

}  // namespace

void refuse_loose_values(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands({})) {
    for (CLI::Option* option : command->get_options()) {
      if (option->get_items_expected_max() == 0) continue;  // a flag
      const std::string type = option->get_type_name();
      option->check(type == "INT"     ? check_whole
                    : type == "UINT"  ? check_unsigned
                    : type == "FLOAT" ? check_number
                                      : check_text);
    }
  }
}

}  // namespace heedful::cli
