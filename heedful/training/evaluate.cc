#include "heedful/training/evaluate.h"

#include <span>

#include "heedful/core/error.h"
#include "heedful/inference/generate.h"

namespace heedful {

Tensor<Index, 2> prompts_of(const Task& task, View<const Index, 2> questions) {
  Tensor<Index, 2> prompts({questions.extent(0), questions.extent(1) + 1});
  for (Index b = 0; b < prompts.extent(0); ++b) {
    for (Index t = 0; t < questions.extent(1); ++t) prompts(b, t) = questions(b, t);
    prompts(b, questions.extent(1)) = task.separator();
  }
  return prompts;
}

template <class T>
Accuracy evaluate(const Context& context, const Decoder<T>& decoder, const Task& task, Index samples,
                  std::uint64_t seed) {
  require(1 <= samples && samples <= 1 << 20, "evaluate", "samples: expected 1 to {}, got {}", 1 << 20, samples);
  Random random(seed);
  const Tensor<Index, 2> questions = draw_questions(task, samples, random);
  const Tensor<Index, 2> prompts = prompts_of(task, questions);
  const Generation<T> generation =
      generate<T>(context, decoder, prompts, {.tokens = task.length, .cache = true, .sampler = {}});
  Index right_tokens = 0, right_sequences = 0;
  for (Index b = 0; b < samples; ++b) {
    const auto expected = answer(task.kind, std::span(&questions(b, 0), static_cast<std::size_t>(task.length)));
    Index right = 0;
    for (Index t = 0; t < task.length; ++t) {
      if (generation.tokens(b, t) == expected[static_cast<std::size_t>(t)]) ++right;
    }
    right_tokens += right;
    if (right == task.length) ++right_sequences;
  }
  const auto n = static_cast<double>(samples);
  return {static_cast<double>(right_tokens) / (n * static_cast<double>(task.length)),
          static_cast<double>(right_sequences) / n};
}

template Accuracy evaluate<float>(const Context&, const Decoder<float>&, const Task&, Index, std::uint64_t);
template Accuracy evaluate<double>(const Context&, const Decoder<double>&, const Task&, Index, std::uint64_t);

}  // namespace heedful
