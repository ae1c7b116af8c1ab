// Accuracy by true generation: the model answers fresh questions one token at a time, reading its own answers.
#ifndef HEEDFUL_TRAINING_EVALUATE_H_
#define HEEDFUL_TRAINING_EVALUATE_H_

#include <cstdint>

#include "heedful/decoder/decoder.h"
#include "heedful/training/task.h"

namespace heedful {

struct Accuracy {
  double token = 0;     // share of answer tokens that are right
  double sequence = 0;  // share of answers that are right throughout
};

// Questions [n, L] with the separator after them: what a model is given.
Tensor<Index, 2> prompts_of(const Task& task, View<const Index, 2> questions);

template <class T>
Accuracy evaluate(const Context& context, const Decoder<T>& decoder, const Task& task, Index samples,
                  std::uint64_t seed);

}  // namespace heedful

#endif  // HEEDFUL_TRAINING_EVALUATE_H_
