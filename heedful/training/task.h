// Synthetic tasks whose answer can be checked at a glance. A sequence is
//
//     [s₁ … s_L, separator, a₁ … a_L]      symbols 0 … alphabet−1, separator = alphabet
//
// where the answer a is the question s copied, sorted (ascending) or reversed. The model reads positions 0 … 2L−1 and
// predicts the next token; only the L positions of the answer carry loss. Every batch is drawn afresh.
#ifndef HEEDFUL_TRAINING_TASK_H_
#define HEEDFUL_TRAINING_TASK_H_

#include <span>
#include <vector>

#include "heedful/core/enum_names.h"
#include "heedful/core/random.h"
#include "heedful/core/tensor.h"
#include "heedful/decoder/loss.h"

namespace heedful {

enum class TaskKind { copy, sort, reverse };
inline constexpr EnumName<TaskKind> kTaskNames[] = {
    {TaskKind::copy, "copy"}, {TaskKind::sort, "sort"}, {TaskKind::reverse, "reverse"}};

struct Task {
  TaskKind kind = TaskKind::copy;
  Index length = 6;     // L, symbols in the question
  Index alphabet = 20;  // symbols to draw from

  Index separator() const { return alphabet; }
  Index vocabulary() const { return alphabet + 1; }
  Index context() const { return 2 * length + 1; }
  bool operator==(const Task&) const = default;
};

void validate(const Task& task);  // throws Error

std::vector<Index> answer(TaskKind kind, std::span<const Index> question);

template <class T>
Batch<T> make_batch(const Task& task, Index batch);  // sized, loss weights set
template <class T>
void draw_batch(Batch<T>& batch, const Task& task, Random& random);  // fresh questions and their answers

// Questions to test on: [n, L], drawn from their own seed.
Tensor<Index, 2> draw_questions(const Task& task, Index n, Random& random);

}  // namespace heedful

#endif  // HEEDFUL_TRAINING_TASK_H_
