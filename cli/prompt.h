// What stands behind --prompt as the tokens a model is given: a question, "17 3 0 12 7 9", as [1, L + 1] with the
// separator after it; text as [1, T].
#ifndef HEEDFUL_CLI_PROMPT_H_
#define HEEDFUL_CLI_PROMPT_H_

#include <string>

#include "heedful/core/tensor.h"
#include "heedful/training/corpus.h"
#include "heedful/training/task.h"

namespace heedful::cli {

// Throws Error where a word is not a symbol of the task's alphabet. A separator already at the end is accepted.
Tensor<Index, 2> parse_prompt(const std::string& text, const Task& task);

// Throws Error where it is empty, no UTF-8, or holds a character that the corpus does not.
Tensor<Index, 2> text_prompt(const std::string& text, const CorpusOptions& corpus);

}  // namespace heedful::cli

#endif  // HEEDFUL_CLI_PROMPT_H_
