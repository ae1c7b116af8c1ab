// The lines of a text of tokens.
#ifndef HEEDFUL_TRAINING_LINES_H_
#define HEEDFUL_TRAINING_LINES_H_

#include <algorithm>

#include "heedful/training/tokens.h"

namespace heedful {

// Calls each(line, begin) for every line, without its newline; what follows the last newline is a line where it is
// not empty.
template <class Each>
void for_each_line(TokensView text, char32_t newline, Each each) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(newline, begin), text.size());
    each(text.substr(begin, end - begin), begin);
    begin = end + 1;
  }
}

}  // namespace heedful

#endif  // HEEDFUL_TRAINING_LINES_H_
