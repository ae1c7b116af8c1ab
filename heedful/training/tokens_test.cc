#include "heedful/training/tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heedful/core/error.h"

namespace heedful {
namespace {

std::string error_of(const std::string& text) {
  try {
    from_utf8(text, "here");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Utf8, EveryWidthThereAndBack) {
  const std::string text = "a\n\x7f \u0080é\u07ff \u0800€\ud7ff\ue000\uffff \U00010000😀\U0010ffff";
  const std::u32string expected = U"a\n\x7f \u0080é\u07ff \u0800€\ud7ff\ue000\uffff \U00010000😀\U0010ffff";
  EXPECT_EQ(from_utf8(text, "here"), expected);
  EXPECT_EQ(to_utf8(expected), text);
  EXPECT_EQ(from_utf8("", "here"), U"");
}

TEST(Utf8, RefusesWhatItIsNotAndSaysWhere) {
  for (const auto& [text, offset] : std::vector<std::pair<std::string, int>>{
           {"ab\x80", 2},               // continues nothing
           {"ab\xff", 2},               // starts nothing
           {"é\xc3", 2},                // cut short
           {"\xe2\x82", 0},             // cut short
           {"\xf0\x9f\x98", 0},         // cut short
           {"\xc3(", 1},                // not continued
           {"\xe2(\xa1", 1},            // not continued
           {"\xe2\x82(", 2},            // not continued
           {"\xc0\x80", 0},             // overlong NUL
           {"\xc1\xbf", 0},             // overlong
           {"\xe0\x9f\xbf", 0},         // overlong
           {"\xf0\x8f\xbf\xbf", 0},     // overlong
           {"x\xed\xa0\x80", 1},        // surrogate
           {"\xf4\x90\x80\x80", 0},     // above U+10FFFF
           {"\xf8\x88\x80\x80\x80", 0}  // five bytes
       }) {
    EXPECT_THAT(error_of(text), testing::StartsWith(fmt::format("[here] byte {}: not UTF-8", offset))) << text;
  }
}

TEST(Tokenizer, CharsAreCountedInTheAlphabet) {
  const Tokenizer tokenizer(TokenKind::chars, alphabet_of(U"bé\na€b"));
  EXPECT_EQ(tokenizer.vocabulary(), 5);  // \n a b é €
  EXPECT_EQ(tokenizer.encode("ab\n€é", "here"), (Tokens{1, 2, 0, 4, 3}));
  EXPECT_EQ(tokenizer.decode(Tokens{1, 2, 0, 4, 3}), "ab\n€é");
  EXPECT_EQ(tokenizer.newline(), 0u);
  EXPECT_EQ(tokenizer.bytes_of(1), 1);
  EXPECT_EQ(tokenizer.bytes_of(3), 2);
  EXPECT_EQ(tokenizer.bytes_of(4), 3);
  try {
    tokenizer.encode("abc", "prompt");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[prompt] character 2: expected one of the 5 of the vocabulary, got \"c\" (U+0063)");
  }
  EXPECT_THROW(tokenizer.decode(Tokens{5}), Error);
  EXPECT_EQ(Tokenizer(TokenKind::chars, U"ab").newline(), 2u);  // has none
}

TEST(Tokenizer, BytesTakeAnything) {
  const Tokenizer tokenizer(TokenKind::bytes, U"");
  const std::string text("\xff\0\n\xe2\x82\xac", 6);
  EXPECT_EQ(tokenizer.vocabulary(), 256);
  EXPECT_EQ(tokenizer.encode(text, "here"), (Tokens{255, 0, 10, 0xe2, 0x82, 0xac}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, "here")), text);
  EXPECT_EQ(tokenizer.newline(), 10u);
  EXPECT_EQ(tokenizer.bytes_of(0xe2), 1);
  EXPECT_THROW(tokenizer.decode(Tokens{256}), Error);
}

TEST(Tokenizer, RefusesAlphabetsThatAreNone) {
  EXPECT_THROW(Tokenizer(TokenKind::chars, U""), Error);
  EXPECT_THROW(Tokenizer(TokenKind::chars, U"ba"), Error);
  EXPECT_THROW(Tokenizer(TokenKind::chars, U"aab"), Error);
  EXPECT_THROW(Tokenizer(TokenKind::chars, std::u32string{0x110000}), Error);
  EXPECT_THROW(Tokenizer(TokenKind::bytes, U"ab"), Error);
}

}  // namespace
}  // namespace heedful
