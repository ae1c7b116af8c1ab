// Products of the shapes that a small decoder's step asks for, and of larger ones, each beside the BLAS libraries that
// are found, in turns. A row gives the time, the rate, its share of this machine's limit, the rate of every peer, the
// ratio to the fastest of them (above 1: ours is faster) and the deviation from the product in double.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>

#include "bench/blas_peers.h"
#include "bench/contest.h"
#include "bench/machine.h"
#include "heedful/core/random.h"
#include "heedful/core/tensor.h"
#include "heedful/kernels/matmul.h"
#include "heedful/kernels/matmul_reference.h"

namespace heedful {
namespace {

struct Shape {
  Index M, N, K;
  bool a_transposed = false, b_transposed = false;

  std::string text() const {
    return fmt::format("{}x{}x{}{}{}", M, N, K, a_transposed ? "/a_transposed" : "",
                       b_transposed ? "/b_transposed" : "");
  }
};

constexpr Shape kShapes[] = {
    {384, 32, 32},        // the article's step, B·T = 384: projections,
    {384, 128, 32},       // feed-forward up
    {384, 32, 128},       // and down,
    {32, 32, 384, true},  // and gradients of weights
    {64, 64, 64, false, true},
    {128, 512, 64, false, true},  // scores
    {64, 64, 512},                // weights times values
    {2048, 384, 384},             // the GPT-like step, B·T = 2048
    {2048, 1536, 384},
    {2048, 2048, 2048},
};

template <class T>
Tensor<double, 2> widened(View<const T, 2> x) {
  Tensor<double, 2> wide(x.extents());
  for (Index i = 0; i < x.extent(0); ++i) {
    for (Index j = 0; j < x.extent(1); ++j) wide(i, j) = static_cast<double>(x(i, j));
  }
  return wide;
}

// The largest |got − exact| of the last few rows, in parts of the largest |exact|.
template <class T>
double deviation(View<const T, 2> c, View<const T, 2> a, View<const T, 2> b) {
  const Index rows = std::min(Index{4}, c.extent(0)), begin = c.extent(0) - rows;
  Tensor<double, 2> exact({rows, c.extent(1)});
  const auto wide_a = widened<T>(a.slice(0, begin, c.extent(0))), wide_b = widened<T>(b);
  matmul_reference<double>(exact, wide_a, wide_b);
  double worst = 0, largest = 0;
  for (Index m = 0; m < rows; ++m) {
    for (Index n = 0; n < c.extent(1); ++n) {
      worst = std::max(worst, std::abs(static_cast<double>(c(begin + m, n)) - exact(m, n)));
      largest = std::max(largest, std::abs(exact(m, n)));
    }
  }
  return worst / largest;
}

template <class T>
void product(benchmark::State& state, const Shape& shape, int threads) {
  const Context context(threads);
  const auto extents = [](Index rows, Index columns, bool transposed) {
    return transposed ? Extents<2>{columns, rows} : Extents<2>{rows, columns};
  };
  Tensor<T, 2> a_memory(extents(shape.M, shape.K, shape.a_transposed)),
      b_memory(extents(shape.K, shape.N, shape.b_transposed)), c({shape.M, shape.N}), peer_c(c.extents());
  Random random(1);
  for (Tensor<T, 2>* tensor : {&a_memory, &b_memory}) {
    for (T& x : *tensor) x = static_cast<T>(random.normal());
  }
  const auto seen = [](const Tensor<T, 2>& memory, bool transposed) {
    return transposed ? memory.view().transpose() : memory.view();
  };
  const View<const T, 2> a = seen(a_memory, shape.a_transposed), b = seen(b_memory, shape.b_transposed);

  const std::vector<BlasPeer<T>> peers = blas_peers<T>();
  std::vector<Contestant> contestants = {{"heedful", [&] { matmul<T>(context, c, a, b); }}};
  for (const BlasPeer<T>& peer : peers) {
    peer.use_threads(threads);
    contestants.push_back({peer.name, [&] { peer.multiply(peer_c, a, b); }});
  }
  const double operations = 2.0 * static_cast<double>(shape.M * shape.N) * static_cast<double>(shape.K);
  double peak = peak_gflops<T>(context);
  for (auto _ : state) {
    hold_contest(contestants, threads);
    state.SetIterationTime(contestants[0].seconds);
  }
  peak = std::max(peak, peak_gflops<T>(context));

  const auto rate = [&](const Contestant& contestant) { return operations / contestant.seconds * 1e-9; };
  state.counters["GFLOP/s"] = rate(contestants[0]);
  state.counters["of_peak"] = rate(contestants[0]) / peak;
  double best = 0;
  for (std::size_t i = 1; i < contestants.size(); ++i) {
    state.counters[contestants[i].name] = rate(contestants[i]);
    best = std::max(best, rate(contestants[i]));
  }
  if (best > 0) state.counters["vs_best"] = rate(contestants[0]) / best;
  state.counters["deviation"] = deviation<T>(c, a, b);
}

template <class T>
void add_all(const std::string& type) {
  for (const Shape& shape : kShapes) {
    register_row(fmt::format("matmul/{}/{}", type, shape.text()),
                 [=](benchmark::State& state, int threads) { product<T>(state, shape, threads); });
  }
}

const int registered = (add_all<float>("f32"), add_all<double>("f64"), 0);

}  // namespace
}  // namespace heedful
