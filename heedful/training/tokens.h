// Text as tokens and back.
//
//     bytes   token = the byte; vocabulary 256, any file
//     chars   token i = the i-th code point of an alphabet, ascending; text must be UTF-8
//
// UTF-8 as RFC 3629 has it: overlong forms, surrogates, values above U+10FFFF and torn sequences throw Error naming
// the byte offset.
#ifndef HEEDFUL_TRAINING_TOKENS_H_
#define HEEDFUL_TRAINING_TOKENS_H_

#include <string>
#include <string_view>

#include "heedful/core/enum_names.h"
#include "heedful/core/view.h"

namespace heedful {

enum class TokenKind { bytes, chars };
inline constexpr EnumName<TokenKind> kTokenKindNames[] = {{TokenKind::bytes, "bytes"}, {TokenKind::chars, "chars"}};

// Tokens stand in a std::u32string, so that pieces of them are compared and hashed as pieces of text are.
using Tokens = std::u32string;
using TokensView = std::u32string_view;

std::u32string from_utf8(std::string_view text, std::string_view where);  // throws Error
std::string to_utf8(std::u32string_view code_points);

// The code points that occur, ascending, each once.
std::u32string alphabet_of(std::u32string code_points);

class Tokenizer {
 public:
  Tokenizer() = default;  // bytes
  // Throws Error unless the alphabet is ascending and not empty for chars, and empty for bytes.
  Tokenizer(TokenKind kind, std::u32string alphabet);

  Index vocabulary() const { return kind_ == TokenKind::bytes ? 256 : std::ssize(alphabet_); }
  Tokens encode(std::string_view text, std::string_view where) const;  // throws Error where a token is not known
  std::string decode(TokensView tokens) const;
  Index bytes_of(char32_t token) const;  // in the text
  // The token that ends a line; the vocabulary's size where the alphabet has none.
  char32_t newline() const;

 private:
  TokenKind kind_ = TokenKind::bytes;
  std::u32string alphabet_;
};

}  // namespace heedful

#endif  // HEEDFUL_TRAINING_TOKENS_H_
