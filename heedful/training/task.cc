#include "heedful/training/task.h"

#include <algorithm>

namespace heedful {

void validate(const Task& task) {
  require(1 <= task.length && task.length <= 1 << 20, "task", "length: expected 1 to {}, got {}", 1 << 20,
          task.length);
  require(1 <= task.alphabet && task.alphabet <= 1 << 20, "task", "alphabet: expected 1 to {}, got {}", 1 << 20,
          task.alphabet);
}

namespace {

void turn_into_answer(TaskKind kind, std::span<Index> question) {
  if (kind == TaskKind::sort) std::ranges::sort(question);
  if (kind == TaskKind::reverse) std::ranges::reverse(question);
}

}  // namespace

std::vector<Index> answer(TaskKind kind, std::span<const Index> question) {
  std::vector<Index> result(question.begin(), question.end());
  turn_into_answer(kind, result);
  return result;
}

template <class T>
Batch<T> make_batch(const Task& task, Index batch) {
  validate(task);
  require(1 <= batch && batch <= 1 << 20, "task", "batch: expected 1 to {}, got {}", 1 << 20, batch);
  const Index length = 2 * task.length;
  Batch<T> result{Tensor<Index, 2>({batch, length}), Tensor<Index, 2>({batch, length}),
                  Tensor<T, 2>({batch, length})};
  for (Index b = 0; b < batch; ++b) {
    for (Index t = task.length; t < length; ++t) result.loss_weights(b, t) = 1;
  }
  return result;
}

template <class T>
void draw_batch(Batch<T>& batch, const Task& task, Random& random) {
  const Index length = task.length;
  for (Index b = 0; b < batch.tokens.extent(0); ++b) {
    Index *tokens = &batch.tokens(b, 0), *targets = &batch.targets(b, 0);  // both [2L], of the sequence's 2L + 1
    for (Index t = 0; t < length; ++t) tokens[t] = random.integer(0, task.alphabet);
    tokens[length] = task.separator();
    std::copy_n(tokens, length, targets + length);
    turn_into_answer(task.kind, {targets + length, static_cast<std::size_t>(length)});
    std::copy_n(tokens + 1, length, targets);
    std::copy_n(targets + length, length - 1, tokens + length + 1);
  }
}

Tensor<Index, 2> draw_questions(const Task& task, Index n, Random& random) {
  Tensor<Index, 2> questions({n, task.length});
  for (Index& symbol : questions) symbol = random.integer(0, task.alphabet);
  return questions;
}

template Batch<float> make_batch<float>(const Task&, Index);
template Batch<double> make_batch<double>(const Task&, Index);
template void draw_batch<float>(Batch<float>&, const Task&, Random&);
template void draw_batch<double>(Batch<double>&, const Task&, Random&);

}  // namespace heedful
