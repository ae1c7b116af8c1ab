#include "heedful/core/context.h"

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include "heedful/core/error.h"

namespace heedful {

struct Context::Arena {
  explicit Arena(int threads) : arena(threads) {}
  oneapi::tbb::task_arena arena;
};

Context::Context(int threads) : threads_(threads) {
  require(1 <= threads && threads <= 1024, "context", "threads: expected 1 to 1024, got {}", threads);
  if (threads > 1) arena_ = std::make_unique<Arena>(threads);
}
Context::~Context() = default;
Context::Context(Context&&) noexcept = default;
Context& Context::operator=(Context&&) noexcept = default;

void Context::parallel_for(Index count, const std::function<void(Index)>& work) const {
  if (arena_ == nullptr || count < 2) {
    for (Index i = 0; i < count; ++i) work(i);
    return;
  }
  arena_->arena.execute([&] { oneapi::tbb::parallel_for(Index{0}, count, work); });
}

}  // namespace heedful
