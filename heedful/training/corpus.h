// A text to learn from, and the part of it that is held out.
//
// The tokens of the whole text are cut into `blocks` equal blocks: block k is [⌊n·(k−1)/blocks⌋, ⌊n·k/blocks⌋). One
// block is held out, before anything else happens; the rest, one or two contiguous parts, is for training. With the
// defaults the last tenth is held out. Only the alphabet is taken from the whole text: a character that training
// never shows could not be scored otherwise.
//
// A line that stands in both parts belongs to training. Its tokens in the held-out part may be read as context and do
// not count in the score: `fresh` says which tokens do. (overlap.h reports how much the two parts share.)
//
// Batches are windows of T + 1 neighbouring tokens that start anywhere in one training part, every position weighted:
// no window reaches across the cut.
#ifndef HEEDFUL_TRAINING_CORPUS_H_
#define HEEDFUL_TRAINING_CORPUS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "heedful/core/random.h"
#include "heedful/decoder/loss.h"
#include "heedful/training/tokens.h"

namespace heedful {

struct CorpusOptions {
  std::string file;
  TokenKind tokens = TokenKind::chars;
  Index blocks = 10, held_out_block = 10;  // counted from 1
  Index evaluate_every = 250;              // steps between scores of the held-out part
  Index evaluate_windows = 256;            // of each such score, evenly spread (held_out.h); 0 takes all

  // What the file was when the run began; bytes = 0: not read yet.
  Index bytes = 0;
  std::uint64_t hash = 0;   // FNV-1a
  std::u32string alphabet;  // of chars

  Index vocabulary() const { return tokens == TokenKind::bytes ? 256 : std::ssize(alphabet); }
  bool operator==(const CorpusOptions&) const = default;
};

void validate(const CorpusOptions& options);  // throws Error

struct Corpus {
  CorpusOptions options;
  Tokenizer tokenizer;
  Tokens tokens;                               // of the whole text
  Index held_out_begin = 0, held_out_end = 0;  // in them
  std::vector<bool> fresh;                     // [held-out tokens] whether the token's line is new to training

  std::vector<TokensView> training() const;  // one or two parts, not empty
  TokensView held_out() const;
};

// Reads the file and fills in what it is. Throws Error where it cannot be read, is no UTF-8 though its characters are
// wanted, is too short to be cut, has no held-out line that training does not hold too, or is not the file that the
// options say it was.
Corpus read_corpus(CorpusOptions options);

// The same of a text that is in memory; `options.file` is what errors call it.
Corpus corpus_from(CorpusOptions options, std::string_view text);

std::uint64_t hash_of(std::string_view bytes);  // FNV-1a, 64 bits

// Throws Error where no training part holds a window of `length` + 1 tokens.
void require_windows(const Corpus& corpus, Index length);

template <class T>
Batch<T> make_windows(Index batch, Index length);  // [batch, length], loss weights 1
template <class T>
void draw_windows(Batch<T>& batch, const Corpus& corpus, Random& random);

}  // namespace heedful

#endif  // HEEDFUL_TRAINING_CORPUS_H_
