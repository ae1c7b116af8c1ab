#include "bench/machine.h"

#include <algorithm>
#include <fstream>
#include <type_traits>
#include <vector>

#include "bench/clock.h"
#include "heedful/core/error.h"
#include "heedful/core/tensor.h"
#include "heedful/kernels/simd_targets.h"

#define HWY_TARGET_INCLUDE "bench/machine.cc"
#include "hwy/foreach_target.h"  // first: it includes this file once a target

#include "heedful/kernels/each_target.h"
#include "heedful/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heedful::HWY_NAMESPACE {
namespace {

inline constexpr int kChains = 12;  // enough to hide the latency, few enough for 16 registers

// `rounds` multiply-adds on each of kChains vectors; the floating-point operations done.
template <class T>
double multiply_adds(Index rounds, T* sink) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  V sum[kChains];
  HWY_UNROLL(16)
  for (int n = 0; n < kChains; ++n) sum[n] = hn::Set(d, static_cast<T>(n));
  const V a = hn::Set(d, static_cast<T>(0.999)), b = hn::Set(d, static_cast<T>(0.001));
  for (Index round = 0; round < rounds; ++round) {
    HWY_UNROLL(16)
    for (int n = 0; n < kChains; ++n) sum[n] = Fma(sum[n], a, b);
  }
  V total = sum[0];
  for (int n = 1; n < kChains; ++n) total = hn::Add(total, sum[n]);
  *sink = hn::GetLane(total);
  return 2.0 * kChains * static_cast<double>(rounds) * static_cast<double>(hn::Lanes(d));
}
double multiply_adds_float(Index rounds, float* sink) {
  return multiply_adds(rounds, sink);
}
double multiply_adds_double(Index rounds, double* sink) {
  return multiply_adds(rounds, sink);
}

void read_all(const float* data, Index count, float* sink) {
  const hn::ScalableTag<float> d;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  auto a = hn::Zero(d), b = a, c = a, e = a;
  for (Index n = 0; n + 4 * lanes <= count; n += 4 * lanes) {
    a = hn::Add(a, hn::LoadU(d, data + n));
    b = hn::Add(b, hn::LoadU(d, data + n + lanes));
    c = hn::Add(c, hn::LoadU(d, data + n + 2 * lanes));
    e = hn::Add(e, hn::LoadU(d, data + n + 3 * lanes));
  }
  *sink = hn::GetLane(hn::Add(hn::Add(a, b), hn::Add(c, e)));
}

const char* target_name() {
  return hwy::TargetName(HWY_TARGET);
}

}  // namespace
}  // namespace heedful::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heedful {
namespace {

HWY_EXPORT(multiply_adds_float);
HWY_EXPORT(multiply_adds_double);
HWY_EXPORT(read_all);
HWY_EXPORT(target_name);

constexpr int kRepetitions = 5;  // the best of which counts: a limit is what can be reached

double seconds_of(const Context& context, const auto& work) {
  const double begin = clock_seconds(context.threads());
  work();
  return clock_seconds(context.threads()) - begin;
}

}  // namespace

template <class T>
double peak_gflops(const Context& context) {
  constexpr Index kRounds = 200'000;  // about a millisecond
  std::vector<T> sinks(static_cast<std::size_t>(context.threads()));
  double best = 0;
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    std::vector<double> operations(sinks.size());
    const double seconds = seconds_of(context, [&] {
      context.parallel_for(context.threads(), [&](Index thread) {
        const std::size_t at = static_cast<std::size_t>(thread);
        if constexpr (std::is_same_v<T, float>) {
          operations[at] = HWY_DYNAMIC_DISPATCH(multiply_adds_float)(kRounds, &sinks[at]);
        } else {
          operations[at] = HWY_DYNAMIC_DISPATCH(multiply_adds_double)(kRounds, &sinks[at]);
        }
      });
    });
    double total = 0;
    for (const double n : operations) total += n;
    best = std::max(best, total / seconds * 1e-9);
  }
  return best;
}
template double peak_gflops<float>(const Context&);
template double peak_gflops<double>(const Context&);

double read_gbytes_per_second(const Context& context, Index bytes) {
  const Index threads = context.threads(), count = bytes / static_cast<Index>(sizeof(float)) / threads;
  Tensor<float, 2> data({threads, count});
  std::vector<float> sinks(static_cast<std::size_t>(threads));
  const Index times = std::max(Index{1}, (Index{64} << 20) / std::max(Index{1}, bytes));
  double best = 0;
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    const double seconds = seconds_of(context, [&] {
      context.parallel_for(threads, [&](Index thread) {
        for (Index time = 0; time < times; ++time) {
          HWY_DYNAMIC_DISPATCH(read_all)(&data(thread, Index{0}), count, &sinks[static_cast<std::size_t>(thread)]);
        }
      });
    });
    best = std::max(best, static_cast<double>(times * data.size()) * sizeof(float) / seconds * 1e-9);
  }
  return best;
}

std::string machine_name() {
  std::string name = "unknown processor";
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) {
      name = line.substr(line.find(':') + 2);
      break;
    }
  }
  return name;
}

std::string machine_target() {
  return HWY_DYNAMIC_DISPATCH(target_name)();
}

void choose_target(const std::string& name) {
  std::int64_t allowed = 0;
  for_each_target([&](const char* target) {
    if (name == target) allowed = hwy::SupportedTargets();
  });
  require(allowed != 0, "bench", "target: expected one this machine has, got {}", name);
  hwy::SetSupportedTargetsForTest(allowed);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace heedful
#endif  // HWY_ONCE
