#include "heedful/core/context.h"

#include "heedful/core/error.h"

#ifdef HEEDFUL_PLAIN_THREADS
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>
#else
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#endif

namespace heedful {
namespace {
constexpr int kMaxThreads = 1024;
}  // namespace

#ifdef HEEDFUL_PLAIN_THREADS
// For the thread sanitizer, which cannot see into libtbb and would report each of its hand-overs as a race.
struct Context::Arena {
  explicit Arena(int count) : threads(count) {}

  void run(Index count, const Borrowed& work) const {
    std::atomic<Index> next = 0;
    std::exception_ptr failure;
    std::mutex failure_mutex;
    std::vector<std::jthread> pool;
    for (int thread = 0; thread < threads; ++thread) {
      pool.emplace_back([&] {
        try {
          for (Index i = next++; i < count; i = next++) work(i);
        } catch (...) {
          const std::lock_guard lock(failure_mutex);
          failure = std::current_exception();
        }
      });
    }
    pool.clear();  // joins
    if (failure) std::rethrow_exception(failure);
  }

  int threads;
};
#else
struct Context::Arena {
  explicit Arena(int threads) : arena(threads) {}

  void run(Index count, const Borrowed& work) {
    arena.execute([&] { oneapi::tbb::parallel_for(Index{0}, count, work); });
  }

  // Otherwise more threads than cores would be cut down, with a warning on stderr.
  oneapi::tbb::global_control limit{oneapi::tbb::global_control::max_allowed_parallelism, kMaxThreads};
  oneapi::tbb::task_arena arena;
};
#endif

Context::Context(int threads) : threads_(threads) {
  require(1 <= threads && threads <= kMaxThreads, "context", "threads: expected 1 to {}, got {}", kMaxThreads,
          threads);
  if (threads > 1) arena_ = std::make_unique<Arena>(threads);
}
Context::~Context() = default;
Context::Context(Context&&) noexcept = default;
Context& Context::operator=(Context&&) noexcept = default;

void Context::run(Index count, const Borrowed& work) const {
  if (arena_ == nullptr || count < 2) {
    for (Index i = 0; i < count; ++i) work(i);
    return;
  }
  arena_->run(count, work);
}

}  // namespace heedful
