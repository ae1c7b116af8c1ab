#include "heedful/training/corpus.h"

#include <algorithm>
#include <unordered_set>

#include "heedful/core/error.h"
#include "heedful/formats/bytes.h"
#include "heedful/training/lines.h"

namespace heedful {
namespace {

constexpr const char* kWhere = "corpus";
constexpr Index kMaxTextBytes = Index{1} << 30;

void identify(CorpusOptions& options, std::string_view text) {
  const auto bytes = std::ssize(text);
  const std::uint64_t hash = hash_of(text);
  require(options.bytes == 0 || (options.bytes == bytes && options.hash == hash), kWhere,
          "{}: not the file that the run began with: expected {} bytes with hash {:016x}, got {} with {:016x}",
          options.file, options.bytes, options.hash, bytes, hash);
  if (options.bytes == 0 && options.tokens == TokenKind::chars) {
    options.alphabet = alphabet_of(from_utf8(text, options.file));
  }
  options.bytes = bytes;
  options.hash = hash;
}

// How many places a window of `length` + 1 tokens may start at.
Index starts(TokensView part, Index length) {
  return std::max(std::ssize(part) - length, Index{0});
}

std::vector<bool> fresh_tokens(const Corpus& corpus) {
  std::unordered_set<TokensView> known;
  const char32_t newline = corpus.tokenizer.newline();
  for (const TokensView part : corpus.training())
    for_each_line(part, newline, [&](TokensView line, std::size_t) { known.insert(line); });
  const TokensView held_out = corpus.held_out();
  std::vector<bool> fresh(held_out.size());
  for_each_line(held_out, newline, [&](TokensView line, std::size_t begin) {
    if (known.contains(line)) return;
    // With the newline that ends the line.
    for (std::size_t i = begin; i < std::min(begin + line.size() + 1, held_out.size()); ++i) fresh[i] = true;
  });
  return fresh;
}

}  // namespace

std::uint64_t hash_of(std::string_view bytes) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return hash;
}

void validate(const CorpusOptions& options) {
  require(!options.file.empty(), kWhere, "file: expected a name, got none");
  require(2 <= options.blocks && options.blocks <= 1 << 20, kWhere, "blocks: expected 2 to {}, got {}", 1 << 20,
          options.blocks);
  require(1 <= options.held_out_block && options.held_out_block <= options.blocks, kWhere,
          "held_out_block: expected 1 to {}, got {}", options.blocks, options.held_out_block);
  require(1 <= options.evaluate_every, kWhere, "evaluate_every: expected at least 1, got {}", options.evaluate_every);
  require(0 <= options.evaluate_windows, kWhere, "evaluate_windows: expected 0 (all) or more, got {}",
          options.evaluate_windows);
  require(0 <= options.bytes, kWhere, "bytes: expected 0 or more, got {}", options.bytes);
  if (options.bytes > 0 || !options.alphabet.empty()) Tokenizer(options.tokens, options.alphabet);
}

std::vector<TokensView> Corpus::training() const {
  const TokensView all = tokens;
  std::vector<TokensView> parts;
  for (const TokensView part : {all.substr(0, static_cast<std::size_t>(held_out_begin)),
                                all.substr(static_cast<std::size_t>(held_out_end))}) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

TokensView Corpus::held_out() const {
  return TokensView(tokens).substr(static_cast<std::size_t>(held_out_begin),
                                   static_cast<std::size_t>(held_out_end - held_out_begin));
}

Corpus read_corpus(CorpusOptions options) {
  validate(options);
  const auto bytes = read_file(options.file, kMaxTextBytes);
  return corpus_from(std::move(options), as_text(bytes));
}

Corpus corpus_from(CorpusOptions options, std::string_view text) {
  validate(options);
  require(!text.empty(), kWhere, "{}: expected a text, got an empty file", options.file);
  Corpus corpus;
  identify(options, text);
  corpus.tokenizer = Tokenizer(options.tokens, options.alphabet);
  corpus.tokens = corpus.tokenizer.encode(text, options.file);
  const Index n = std::ssize(corpus.tokens);
  corpus.held_out_begin = n * (options.held_out_block - 1) / options.blocks;
  corpus.held_out_end = n * options.held_out_block / options.blocks;
  corpus.options = std::move(options);
  require(std::ssize(corpus.held_out()) >= 2, kWhere,
          "{}: {} tokens in {} blocks leave a held-out part below 2 tokens", corpus.options.file, n,
          corpus.options.blocks);
  corpus.fresh = fresh_tokens(corpus);
  // The first held-out token has nothing before it and is not scored.
  require(std::find(corpus.fresh.begin() + 1, corpus.fresh.end(), true) != corpus.fresh.end(), kWhere,
          "{}: every line of the held-out part stands in the training part too; nothing is left to score",
          corpus.options.file);
  return corpus;
}

void require_windows(const Corpus& corpus, Index length) {
  Index longest = 0;
  for (const TokensView part : corpus.training()) longest = std::max(longest, std::ssize(part));
  require(length < longest, kWhere, "{}: no part for training holds a window of {} tokens; a shorter context may fit",
          corpus.options.file, length + 1);
}

template <class T>
Batch<T> make_windows(Index batch, Index length) {
  Batch<T> result{Tensor<Index, 2>({batch, length}), Tensor<Index, 2>({batch, length}),
                  Tensor<T, 2>({batch, length})};
  result.loss_weights.fill(1);
  return result;
}

template <class T>
void draw_windows(Batch<T>& batch, const Corpus& corpus, Random& random) {
  const Index length = batch.tokens.extent(1);
  const std::vector<TokensView> parts = corpus.training();
  require_windows(corpus, length);
  Index total = 0;
  for (const TokensView part : parts) total += starts(part, length);
  for (Index b = 0; b < batch.tokens.extent(0); ++b) {
    Index start = random.integer(0, total);
    std::size_t part = 0;
    for (; start >= starts(parts[part], length); ++part) start -= starts(parts[part], length);
    for (Index t = 0; t < length; ++t) {
      batch.tokens(b, t) = parts[part][static_cast<std::size_t>(start + t)];
      batch.targets(b, t) = parts[part][static_cast<std::size_t>(start + t + 1)];
    }
  }
}

template Batch<float> make_windows<float>(Index, Index);
template Batch<double> make_windows<double>(Index, Index);
template void draw_windows<float>(Batch<float>&, const Corpus&, Random&);
template void draw_windows<double>(Batch<double>&, const Corpus&, Random&);

}  // namespace heedful
