#include "heedful/training/tokens.h"

#include <algorithm>
#include <array>

namespace heedful {
namespace {

constexpr char32_t kLargest = 0x10FFFF;

bool is_code_point(char32_t c) {
  return c <= kLargest && (c < 0xD800 || c > 0xDFFF);
}

// How many bytes a code point takes.
Index width_of(char32_t c) {
  return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
}

}  // namespace

std::u32string from_utf8(std::string_view text, std::string_view where) {
  std::u32string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
    const unsigned char lead = byte(i);
    const std::size_t width = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
    require(width > 0, where, "byte {}: not UTF-8: no character starts with {:#04x}", i, lead);
    require(width <= text.size() - i, where, "byte {}: not UTF-8: the last character is cut short", i);
    char32_t c = width == 1 ? lead : lead & (0x7F >> width);
    for (std::size_t k = 1; k < width; ++k) {
      require(byte(i + k) >> 6 == 2, where, "byte {}: not UTF-8: {:#04x} does not continue a character", i + k,
              byte(i + k));
      c = c << 6 | (byte(i + k) & 0x3F);
    }
    require(is_code_point(c) && width_of(c) == static_cast<Index>(width), where,
            "byte {}: not UTF-8: an overlong form, a surrogate, or above U+10FFFF", i);
    result.push_back(c);
    i += width;
  }
  return result;
}

std::string to_utf8(std::u32string_view code_points) {
  std::string result;
  for (const char32_t c : code_points) {
    const Index width = width_of(c);
    constexpr std::array<unsigned, 5> kLead = {0, 0, 0xC0, 0xE0, 0xF0};
    result.push_back(static_cast<char>(kLead[static_cast<std::size_t>(width)] | c >> (6 * (width - 1))));
    for (Index k = width - 2; k >= 0; --k) result.push_back(static_cast<char>(0x80 | (c >> (6 * k) & 0x3F)));
  }
  return result;
}

std::u32string alphabet_of(std::u32string code_points) {
  std::ranges::sort(code_points);
  const auto repeated = std::ranges::unique(code_points);
  code_points.erase(repeated.begin(), repeated.end());
  return code_points;
}

Tokenizer::Tokenizer(TokenKind kind, std::u32string alphabet) : kind_(kind), alphabet_(std::move(alphabet)) {
  if (kind == TokenKind::bytes) {
    require(alphabet_.empty(), "tokens", "alphabet: bytes have none, got {} characters", alphabet_.size());
    return;
  }
  require(!alphabet_.empty(), "tokens", "alphabet: expected at least one character, got none");
  require(std::ranges::adjacent_find(alphabet_, std::greater_equal()) == alphabet_.end() &&
              std::ranges::all_of(alphabet_, is_code_point),
          "tokens", "alphabet: expected code points, ascending, each once");
}

Tokens Tokenizer::encode(std::string_view text, std::string_view where) const {
  Tokens result;
  if (kind_ == TokenKind::bytes) {
    result.reserve(text.size());
    for (const char c : text) result.push_back(static_cast<unsigned char>(c));
    return result;
  }
  result = from_utf8(text, where);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto found = std::ranges::lower_bound(alphabet_, result[i]);
    require(found != alphabet_.end() && *found == result[i], where,
            "character {}: expected one of the {} of the vocabulary, got \"{}\" (U+{:04X})", i, alphabet_.size(),
            to_utf8({&result[i], 1}), static_cast<unsigned>(result[i]));
    result[i] = static_cast<char32_t>(found - alphabet_.begin());
  }
  return result;
}

std::string Tokenizer::decode(TokensView tokens) const {
  std::string result;
  for (const char32_t token : tokens) {
    require(token < static_cast<char32_t>(vocabulary()), "tokens", "token: expected 0 to {}, got {}",
            vocabulary() - 1, static_cast<unsigned>(token));
    if (kind_ == TokenKind::bytes) {
      result.push_back(static_cast<char>(token));
    } else {
      result += to_utf8({&alphabet_[token], 1});
    }
  }
  return result;
}

Index Tokenizer::bytes_of(char32_t token) const {
  return kind_ == TokenKind::bytes ? 1 : width_of(alphabet_[token]);
}

char32_t Tokenizer::newline() const {
  if (kind_ == TokenKind::bytes) return U'\n';
  const auto found = std::ranges::find(alphabet_, U'\n');
  return static_cast<char32_t>(found - alphabet_.begin());
}

}  // namespace heedful
