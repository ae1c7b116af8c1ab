// A question as text, "17 3 0 12 7 9", as the tokens a model is given: [1, L + 1] with the separator after them.
#ifndef HEEDFUL_CLI_PROMPT_H_
#define HEEDFUL_CLI_PROMPT_H_

#include <string>

#include "heedful/core/tensor.h"
#include "heedful/training/task.h"

namespace heedful::cli {

// Throws Error where a word is not a symbol of the task's alphabet. A separator already at the end is accepted.
Tensor<Index, 2> parse_prompt(const std::string& text, const Task& task);

}  // namespace heedful::cli

#endif  // HEEDFUL_CLI_PROMPT_H_
