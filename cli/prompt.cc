#include "cli/prompt.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <vector>

#include "heedful/core/error.h"
#include "heedful/formats/bytes.h"

namespace heedful::cli {

Tensor<Index, 2> parse_prompt(const std::string& text, const Task& task) {
  std::vector<Index> tokens;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    Index token = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), token);
    require(error == std::errc() && end == word.data() + word.size() && 0 <= token && token <= task.separator(),
            "prompt", "expected symbols 0 to {}, got {}", task.alphabet - 1, shown(word));
    tokens.push_back(token);
  }
  if (!tokens.empty() && tokens.back() == task.separator()) tokens.pop_back();
  require(!tokens.empty(), "prompt", "expected at least one symbol, got none");
  require(std::ranges::find(tokens, task.separator()) == tokens.end(), "prompt",
          "expected the separator {} only at the end", task.separator());
  tokens.push_back(task.separator());
  Tensor<Index, 2> prompt({1, static_cast<Index>(tokens.size())});
  std::ranges::copy(tokens, prompt.begin());
  return prompt;
}

Tensor<Index, 2> text_prompt(const std::string& text, const CorpusOptions& corpus) {
  require(!text.empty(), "prompt", "expected at least one token, got none");
  const Tokens tokens = Tokenizer(corpus.tokens, corpus.alphabet).encode(text, "prompt");
  Tensor<Index, 2> prompt({1, std::ssize(tokens)});
  std::ranges::copy(tokens, prompt.begin());
  return prompt;
}

}  // namespace heedful::cli
