#include "heedful/training/overlap.h"

#include <unordered_map>

#include "heedful/core/error.h"
#include "heedful/training/lines.h"

namespace heedful {
namespace {

// Calls each(gram) for every run of `length` tokens.
template <class Each>
void for_each_gram(TokensView text, std::size_t length, Each each) {
  for (std::size_t i = 0; i + length <= text.size(); ++i) each(text.substr(i, length));
}

// Pieces of the held-out part and how often each occurs there. Those that training shows are taken out, so that each
// counts once and the table, made from the smaller part, is all the memory this takes.
class Pieces {
 public:
  void add(TokensView piece) {
    ++pieces_[piece];
    ++overlap_.count;
  }
  void show(TokensView piece) {
    const auto found = pieces_.find(piece);
    if (found == pieces_.end()) return;
    overlap_.shared += found->second;
    pieces_.erase(found);
  }
  Overlap overlap() const { return overlap_; }

 private:
  std::unordered_map<TokensView, Index> pieces_;
  Overlap overlap_;
};

}  // namespace

Overlap gram_overlap(const Corpus& corpus, Index length) {
  require(length >= 1, "overlap", "length: expected at least 1, got {}", length);
  Pieces pieces;
  const auto size = static_cast<std::size_t>(length);
  for_each_gram(corpus.held_out(), size, [&](TokensView gram) { pieces.add(gram); });
  for (const TokensView part : corpus.training()) {
    for_each_gram(part, size, [&](TokensView gram) { pieces.show(gram); });
  }
  return pieces.overlap();
}

Overlap line_overlap(const Corpus& corpus) {
  Pieces pieces;
  const char32_t newline = corpus.tokenizer.newline();
  for_each_line(corpus.held_out(), newline, [&](TokensView line, std::size_t) {
    if (!line.empty()) pieces.add(line);
  });
  for (const TokensView part : corpus.training()) {
    for_each_line(part, newline, [&](TokensView line, std::size_t) { pieces.show(line); });
  }
  return pieces.overlap();
}

}  // namespace heedful
