// The clock of all benchmarks. On one thread it is the processor time of that thread, which stands still while another
// program has the core; on more it is the time of day, for waiting on each other is part of what they take.
#ifndef HEEDFUL_BENCH_CLOCK_H_
#define HEEDFUL_BENCH_CLOCK_H_

#include <ctime>

namespace heedful {

inline double clock_seconds(int threads) {
  timespec now{};
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace heedful

#endif  // HEEDFUL_BENCH_CLOCK_H_
