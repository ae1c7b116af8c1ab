// The article's table: copy and sort, three lengths, three seeds, in both precisions.
#include <gtest/gtest.h>

#include <vector>

#include "heedful/training/evaluate.h"
#include "heedful/training/trainer.h"

namespace heedful {
namespace {

struct Run {
  TaskKind kind;
  Index length;
  std::uint64_t seed;
  Accuracy accuracy;
};

template <class T>
std::vector<Run> train_all() {
  std::vector<Run> runs;
  for (TaskKind kind : {TaskKind::copy, TaskKind::sort}) {
    for (Index length : {4, 6, 8}) {
      for (std::uint64_t seed : {0u, 1u, 2u}) runs.push_back({kind, length, seed, {}});
    }
  }
  const Context single(1), side_by_side(2);
  side_by_side.parallel_for(static_cast<Index>(runs.size()), [&](Index i) {
    Run& run = runs[static_cast<std::size_t>(i)];
    TrainOptions options;
    options.task.kind = run.kind;
    options.task.length = run.length;
    options.seed = run.seed;
    options.precision = sizeof(T) == 4 ? Precision::f32 : Precision::f64;
    fit_model_to_task(options);
    Trainer<T> trainer(new_training<T>(options), single);
    while (trainer.state().step < options.steps) trainer.step();
    run.accuracy = evaluate<T>(single, trainer.state().decoder, options.task, 500, 999);
  });
  return runs;
}

template <class T>
void expect_the_articles_table() {
  int spoiled = 0;
  for (const Run& run : train_all<T>()) {
    const std::string what = fmt::format("{} {} seed {}: {:.3f} per token, {:.3f} per sequence",
                                         run.kind == TaskKind::copy ? "copy" : "sort", run.length, run.seed,
                                         run.accuracy.token, run.accuracy.sequence);
    fmt::print("{}\n", what);
    if (run.kind == TaskKind::copy) {
      EXPECT_EQ(run.accuracy.token, 1) << what;
      EXPECT_EQ(run.accuracy.sequence, 1) << what;
    } else if (run.accuracy.token < 0.97 || run.accuracy.sequence < 0.90) {  // the article's worst: 0.979 and 0.918
      ++spoiled;
    }
  }
  // Sorting is chaotic at this rate, and a run whose last steps meet a spike of the loss ends low: sort 8, seed 2 does
  // so for 2 of 12 changes of one parameter by 1e-14, and the article's own code for 1 of 3. One of nine may.
  EXPECT_LE(spoiled, 1);
}

TEST(SlowTasks, CopyAndSortInFloat) {
  expect_the_articles_table<float>();
}
TEST(SlowTasks, CopyAndSortInDouble) {
  expect_the_articles_table<double>();
}

}  // namespace
}  // namespace heedful
