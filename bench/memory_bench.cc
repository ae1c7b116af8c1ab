// What attention takes beside its inputs, outputs and gradients, forward and backward, on a long sequence: the growth
// of what is resident at most while it runs, as the kernel counts it.
#include <benchmark/benchmark.h>

#include <algorithm>

#include "heedful/attention/attention.h"
#include "heedful/core/random.h"
#include "heedful/core/tensor.h"
#include "heedful/lab/peak_memory.h"

namespace heedful {
namespace {

constexpr double kMebibyte = 1 << 20;

template <class T>
void attention_memory(benchmark::State& state) {
  const Index H = 8, length = state.range(0), D = 64;
  const Context context(2);
  Random random(1);
  const Extents<4> shape{1, H, length, D};
  Tensor<T, 4> q(shape), k(shape), v(shape), dout(shape), out(shape), dq(shape), dk(shape), dv(shape);
  Tensor<T, 3> row_max({1, H, length}), row_sum(row_max.extents());
  for (Tensor<T, 4>* tensor : {&q, &k, &v, &dout}) {
    for (T& x : *tensor) x = static_cast<T>(random.normal());
  }
  for (Tensor<T, 4>* tensor : {&out, &dq, &dk, &dv}) tensor->fill(1);  // resident before the count begins
  const AttentionInputs<T> inputs{.q = q, .k = k, .v = v};
  const AttentionOptions<T> options{.causal = true};
  Index growth = 0;
  for (auto _ : state) {
    const PeakMemory memory;
    attention_forward<T>(context, {.out = out, .row_max = row_max, .row_sum = row_sum}, inputs, options);
    attention_backward<T>(context, {.dq = dq, .dk = dk, .dv = dv}, dout, inputs,
                          {.out = out, .row_max = row_max, .row_sum = row_sum}, options);
    growth = std::max(growth, memory.growth());
  }
  state.counters["beyond_MiB"] = static_cast<double>(growth) / kMebibyte;
  state.counters["tensors_MiB"] = static_cast<double>(8 * q.size() * Index{sizeof(T)}) / kMebibyte;
  state.counters["TxT_MiB"] = static_cast<double>(H * length * length * Index{sizeof(T)}) / kMebibyte;
}

BENCHMARK(attention_memory<float>)
    ->Name("attention/memory/f32/B1/H8/D64/causal/threads2")
    ->Arg(16384)
    ->Iterations(1)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace heedful
