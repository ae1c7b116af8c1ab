// Context: what a computation runs on. Passed down, never global. The thread count changes the time a result takes
// and not one bit of it: work is cut into pieces whose arithmetic does not depend on who computes them.
#ifndef HEEDFUL_CORE_CONTEXT_H_
#define HEEDFUL_CORE_CONTEXT_H_

#include <memory>

#include "heedful/core/view.h"

namespace heedful {

class Context {
 public:
  explicit Context(int threads = 1);  // throws Error unless 1 ≤ threads ≤ 1024
  ~Context();
  Context(Context&&) noexcept;
  Context& operator=(Context&&) noexcept;

  int threads() const { return threads_; }

  // Calls work(i) for every i in [0, count), in any order and on up to threads() threads. An exception thrown by
  // one call is thrown here.
  template <class Work>
  void parallel_for(Index count, const Work& work) const {
    run(count, {&work, [](const void* w, Index i) { (*static_cast<const Work*>(w))(i); }});
  }

 private:
  // A callable of the caller's, borrowed: unlike std::function it never asks for memory.
  struct Borrowed {
    const void* work;
    void (*call)(const void* work, Index i);
    void operator()(Index i) const { call(work, i); }
  };
  void run(Index count, const Borrowed& work) const;

  struct Arena;
  int threads_;
  std::unique_ptr<Arena> arena_;  // none when threads_ is 1
};

}  // namespace heedful

#endif  // HEEDFUL_CORE_CONTEXT_H_
