#include "heedful/training/task.h"

#include <algorithm>

namespace heedful {

void validate(const Task& task) {
  require(1 <= task.length && task.length <= 1 << 20, "task", "length: expected 1 to {}, got {}", 1 << 20,
          task.length);
  require(1 <= task.alphabet && task.alphabet <= 1 << 20, "task", "alphabet: expected 1 to {}, got {}", 1 << 20,
          task.alphabet);
}

std::vector<Index> answer(TaskKind kind, std::span<const Index> question) {
  std::vector<Index> result(question.begin(), question.end());
  if (kind == TaskKind::sort) std::sort(result.begin(), result.end());
  if (kind == TaskKind::reverse) std::reverse(result.begin(), result.end());
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
  const Index n = batch.tokens.extent(0), length = task.length;
  const Tensor<Index, 2> questions = draw_questions(task, n, random);
  std::vector<Index> sequence(static_cast<std::size_t>(task.context()));
  for (Index b = 0; b < n; ++b) {
    const std::span<const Index> question(&questions(b, 0), static_cast<std::size_t>(length));
    const auto separator = std::copy(question.begin(), question.end(), sequence.begin());
    *separator = task.separator();
    std::ranges::copy(answer(task.kind, question), separator + 1);
    for (Index t = 0; t < 2 * length; ++t) {
      batch.tokens(b, t) = sequence[static_cast<std::size_t>(t)];
      batch.targets(b, t) = sequence[static_cast<std::size_t>(t + 1)];
    }
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
