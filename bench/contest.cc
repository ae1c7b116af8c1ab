#include "bench/contest.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "bench/clock.h"

namespace heedful {
namespace {

constexpr int kRounds = 7;
constexpr double kMostSeconds = 5;               // of rounds for one contestant, two rounds at least
constexpr double kTurnSeconds = 0.02;            // of each contestant in each round, one call at least
constexpr double kStretchSeconds = 1e-3;         // calls timed together: far above the clock's own cost
constexpr std::chrono::milliseconds kPause{40};  // OpenBLAS' threads spin for some 26 ms, OpenMP's for less

double seconds_of(const std::function<void()>& work, int calls, int threads) {
  const double begin = clock_seconds(threads);
  for (int call = 0; call < calls; ++call) work();
  return (clock_seconds(threads) - begin) / calls;
}

// The fastest stretch of one turn, per call.
double take_turn(const Contestant& contestant, int threads) {
  const auto& work = contestant.work;
  const double guess = contestant.seconds;
  if (guess < kTurnSeconds) work();  // brings back what the others have driven out of the caches
  const int calls = std::max(1, static_cast<int>(kStretchSeconds / guess));
  double fastest = seconds_of(work, calls, threads);
  for (double spent = fastest * calls; spent < kTurnSeconds;) {
    const double seconds = seconds_of(work, calls, threads);
    fastest = std::min(fastest, seconds);
    spent += seconds * calls;
  }
  return fastest;
}

}  // namespace

void hold_contest(std::vector<Contestant>& contestants, int threads) {
  double slowest = 0;
  for (Contestant& contestant : contestants) {
    contestant.work();
    contestant.seconds = seconds_of(contestant.work, 1, threads);
    slowest = std::max(slowest, contestant.seconds);
  }
  const int rounds = std::clamp(static_cast<int>(kMostSeconds / slowest), 2, kRounds);
  for (int round = 0; round < rounds; ++round) {
    for (Contestant& contestant : contestants) {
      if (threads > 1 && contestants.size() > 1) std::this_thread::sleep_for(kPause);
      contestant.seconds = std::min(contestant.seconds, take_turn(contestant, threads));
    }
  }
}

void register_row(const std::string& name, std::function<void(benchmark::State&, int threads)> row) {
  for (const int threads : {1, 2}) {
    benchmark::RegisterBenchmark((name + "/threads" + std::to_string(threads)).c_str(),
                                 [row, threads](benchmark::State& state) { row(state, threads); })
        ->UseManualTime()
        ->Iterations(1)
        ->Unit(benchmark::kMillisecond);
  }
}

double time_row(benchmark::State& state, int threads, std::function<void()> work) {
  std::vector<Contestant> alone = {{"heedful", std::move(work)}};
  for (auto _ : state) {
    hold_contest(alone, threads);
    state.SetIterationTime(alone[0].seconds);
  }
  return alone[0].seconds;
}

}  // namespace heedful
