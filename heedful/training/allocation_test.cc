// A training step asks the allocator for nothing once the first one is done. Every operator new of this program is
// counted while the counter is on.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>

#include "heedful/training/options.h"
#include "heedful/training/trainer.h"

namespace {

std::atomic<bool> counting = false;
std::atomic<int> allocations = 0;

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (counting) ++allocations;
  void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

// Not to be inlined: the compiler would see free() undo a new of its own and call that a mismatch.
[[gnu::noinline]] void release(void* memory) {
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t bytes) {
  return allocate(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  release(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  release(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  release(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  release(memory);
}

namespace heedful {
namespace {

// The fewest allocations three steps in a row make. A worker takes its memory when it first works, and on a busy
// machine that can be late: steps are taken until some make none. What every step allocates is in each of the rounds.
template <class T>
int allocations_of_a_step(const TrainOptions& options, int threads) {
  constexpr int most_rounds = 100;
  const Context context(threads);
  Trainer<T> trainer(new_training<T>(options), context);
  for (int step = 0; step < 3; ++step) trainer.step();
  int fewest = std::numeric_limits<int>::max();
  for (int round = 0; round < (threads == 1 ? 1 : most_rounds) && fewest > 0; ++round) {
    allocations = 0;
    counting = true;
    for (int step = 0; step < 3; ++step) trainer.step();
    counting = false;
    fewest = std::min<int>(fewest, allocations);
  }
  return fewest;
}

TEST(Allocation, TheCounterCounts) {
  counting = true;
  allocations = 0;
  delete new int(1);
  counting = false;
  EXPECT_EQ(allocations, 1);
}

TEST(Allocation, AStepAllocatesNothing) {
  TrainOptions options;
  fit_model_to_task(options);
  EXPECT_EQ(allocations_of_a_step<float>(options, 1), 0);
  EXPECT_EQ(allocations_of_a_step<double>(options, 1), 0);
  EXPECT_EQ(allocations_of_a_step<float>(options, 2), 0);  // what the scheduler takes for itself comes from elsewhere
  options.model.norm_placement = NormPlacement::post;
  options.model.norm = Norm::rms;
  options.model.activation = FeedForward::swiglu;
  options.model.position = Position::rotary;
  options.model.kv_heads = 1;
  EXPECT_EQ(allocations_of_a_step<float>(options, 1), 0);
}

TEST(Allocation, NorDoesOneOnSequencesOfSeveralChunks) {
  TrainOptions options;
  options.task.length = 300;
  options.batch = 1;
  fit_model_to_task(options);
  EXPECT_EQ(allocations_of_a_step<float>(options, 1), 0);
}

}  // namespace
}  // namespace heedful
