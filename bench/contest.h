// Times several contestants fairly on a machine that others use too: they take turns for a few rounds, and what counts
// of each is its fastest stretch. Another program's work can only add to a time, so the fastest is the nearest to what
// the code itself takes (clock.h says which time); taking turns gives every contestant the same clocks and neighbours.
#ifndef HEEDFUL_BENCH_CONTEST_H_
#define HEEDFUL_BENCH_CONTEST_H_

#include <benchmark/benchmark.h>

#include <functional>
#include <string>
#include <vector>

namespace heedful {

struct Contestant {
  std::string name;
  std::function<void()> work;
  double seconds = 0;  // of one call, set by the contest
};

// On `threads` threads each: between turns of more than one, a pause in which the last contestant's idle threads stop
// spinning.
void hold_contest(std::vector<Contestant>& contestants, int threads);

// Registers a row for 1 thread and one for 2, named with /threads1 and /threads2 at the end; `row(state, threads)`
// sets the iteration's time itself.
void register_row(const std::string& name, std::function<void(benchmark::State&, int threads)> row);

// Times `work` alone, reports it as the row's time and returns the seconds of a call.
double time_row(benchmark::State& state, int threads, std::function<void()> work);

}  // namespace heedful

#endif  // HEEDFUL_BENCH_CONTEST_H_
