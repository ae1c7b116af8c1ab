// Fused attention: every row gives the time, what it does a second, the share of this machine's limit measured right
// before and after, and how far the result is from the strict reference.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>

#include "bench/contest.h"
#include "bench/machine.h"
#include "heedful/attention/attention.h"
#include "heedful/attention/attention_reference.h"
#include "heedful/attention/kv_cache.h"
#include "heedful/core/random.h"
#include "heedful/core/tensor.h"

namespace heedful {
namespace {

// The largest |got − exact|, in parts of the largest |exact|.
template <class T>
double deviation(View<const T, 4> got, const Tensor<double, 4>& exact) {
  double worst = 0, largest = 0;
  for (Index b = 0; b < exact.extent(0); ++b) {
    for (Index h = 0; h < exact.extent(1); ++h) {
      for (Index i = 0; i < exact.extent(2); ++i) {
        for (Index e = 0; e < exact.extent(3); ++e) {
          worst = std::max(worst, std::abs(static_cast<double>(got(b, h, i, e)) - exact(b, h, i, e)));
          largest = std::max(largest, std::abs(exact(b, h, i, e)));
        }
      }
    }
  }
  return worst / largest;
}

struct Shape {
  Index B, H, G, Tq, Tk, D;
  bool causal;
};

template <class T>
struct Problem {
  Tensor<T, 4> q, k, v, dout, out, dq, dk, dv;
  Tensor<T, 3> row_max, row_sum;
  AttentionOptions<T> options;
  double pairs;

  explicit Problem(const Shape& s)
      : q({s.B, s.H, s.Tq, s.D}),
        k({s.B, s.G, s.Tk, s.D}),
        v(k.extents()),
        dout(q.extents()),
        out(q.extents()),
        dq(q.extents()),
        dk(k.extents()),
        dv(k.extents()),
        row_max({s.B, s.H, s.Tq}),
        row_sum({s.B, s.H, s.Tq}) {
    Random random(1);
    for (Tensor<T, 4>* tensor : {&q, &k, &v, &dout}) {
      for (T& x : *tensor) x = static_cast<T>(random.normal());
    }
    options.causal = s.causal;
    options.alignment = Alignment::bottom_right;
    const double queries = static_cast<double>(s.Tq), keys = static_cast<double>(s.Tk);
    pairs = static_cast<double>(s.B * s.H) * (s.causal ? queries * (keys - (queries - 1) / 2) : queries * keys);
  }
  AttentionInputs<T> inputs() const { return {.q = q, .k = k, .v = v}; }
  void forward(const Context& context) {
    attention_forward<T>(context, {.out = out, .row_max = row_max, .row_sum = row_sum}, inputs(), options);
  }
  void backward(const Context& context) {
    attention_backward<T>(context, {.dq = dq, .dk = dk, .dv = dv}, dout, inputs(),
                          {.out = out, .row_max = row_max, .row_sum = row_sum}, options);
  }

  // Of the last few queries, which see every key.
  AttentionInputs<T> last_inputs() const { return {.q = last(q), .k = k, .v = v}; }
  static View<const T, 4> last(const Tensor<T, 4>& x) {
    return x.view().slice(2, std::max(Index{0}, x.extent(2) - 4), x.extent(2));
  }
  double out_deviation() const {
    Tensor<double, 4> exact(last(out).extents());
    attention_reference_forward<T>({.out = exact}, last_inputs(), options);
    return deviation<T>(last(out), exact);
  }
  double dq_deviation() const {
    Tensor<double, 4> exact(last(dq).extents()), dk_exact(dk.extents()), dv_exact(dv.extents());
    attention_reference_backward<T>({.dq = exact, .dk = dk_exact, .dv = dv_exact}, last(dout), last_inputs(),
                                    options);
    return deviation<T>(last(dq), exact);
  }
};

// Times `work`, and reports `operations` floating-point operations a call.
template <class T>
void run(benchmark::State& state, const Context& context, double operations, const auto& work) {
  double peak = peak_gflops<T>(context);
  const double rate = operations / time_row(state, context.threads(), work) * 1e-9;
  peak = std::max(peak, peak_gflops<T>(context));
  state.counters["GFLOP/s"] = rate;
  state.counters["of_peak"] = rate / peak;
}

template <class T>
void forward(benchmark::State& state, const Shape& shape, int threads) {
  const Context context(threads);
  Problem<T> problem(shape);
  run<T>(state, context, 4 * problem.pairs * static_cast<double>(shape.D), [&] { problem.forward(context); });
  state.counters["deviation"] = problem.out_deviation();
}

template <class T>
void backward(benchmark::State& state, const Shape& shape, int threads) {
  const Context context(threads);
  Problem<T> problem(shape);
  problem.forward(context);
  run<T>(state, context, 10 * problem.pairs * static_cast<double>(shape.D), [&] { problem.backward(context); });
  state.counters["deviation"] = problem.dq_deviation();
}

template <class T>
void forward_backward(benchmark::State& state, const Shape& shape, int threads) {
  const Context context(threads);
  Problem<T> problem(shape);
  run<T>(state, context, 14 * problem.pairs * static_cast<double>(shape.D), [&] {
    problem.forward(context);
    problem.backward(context);
  });
  state.counters["deviation"] = problem.dq_deviation();
}

// One query on a cache: what counts is how fast the keys and values are read.
template <class T>
void decode(benchmark::State& state, const Shape& shape, int threads) {
  const Context context(threads);
  Problem<T> problem(shape);
  KvCache<T> cache({.layers = 1, .B = shape.B, .G = shape.G, .capacity = shape.Tk, .D = shape.D, .E = shape.D});
  cache.append(0, 0, problem.k, problem.v);
  AttentionInputs<T> lent{.q = problem.q, .k = {}, .v = {}};
  cache.lend(lent, 0);
  const Index bytes = (problem.k.size() + problem.v.size()) * static_cast<Index>(sizeof(T));
  double limit = read_gbytes_per_second(context, bytes);
  const double seconds =
      time_row(state, threads, [&] { attention_forward<T>(context, {.out = problem.out}, lent, problem.options); });
  limit = std::max(limit, read_gbytes_per_second(context, bytes));
  state.counters["GB/s"] = static_cast<double>(bytes) / seconds * 1e-9;
  state.counters["of_peak"] = static_cast<double>(bytes) / seconds * 1e-9 / limit;
  state.counters["deviation"] = problem.out_deviation();
}

template <class T>
void add_all(const std::string& type) {
  const auto add_one = [&](const char* what, const Shape& s, auto function) {
    register_row(fmt::format("attention/{}/{}/B{}/H{}/G{}/Tq{}/Tk{}/D{}{}", what, type, s.B, s.H, s.G, s.Tq, s.Tk,
                             s.D, s.causal ? "/causal" : ""),
                 [=](benchmark::State& state, int threads) { function(state, s, threads); });
  };
  const auto add = [&](const Shape& shape) {
    add_one("forward", shape, forward<T>);
    add_one("backward", shape, backward<T>);
    add_one("forward_backward", shape, forward_backward<T>);
  };
  for (const Index D : {32, 64, 128}) {
    for (const Index T_ : {1024, 2048}) {
      add({.B = 1, .H = 8, .G = 8, .Tq = T_, .Tk = T_, .D = D, .causal = true});
    }
  }
  add({.B = 1, .H = 8, .G = 8, .Tq = 2048, .Tk = 2048, .D = 64, .causal = false});
  add({.B = 1, .H = 8, .G = 2, .Tq = 2048, .Tk = 2048, .D = 64, .causal = true});
  add({.B = 8, .H = 6, .G = 6, .Tq = 256, .Tk = 256, .D = 64, .causal = true});  // the GPT-like step's
  add({.B = 32, .H = 4, .G = 4, .Tq = 12, .Tk = 12, .D = 8, .causal = true});    // the article's step's
  for (const Index G : {8, 2}) {
    add_one("decode", {.B = 1, .H = 8, .G = G, .Tq = 1, .Tk = 4096, .D = 64, .causal = true}, decode<T>);
  }
}

const int registered = (add_all<float>("f32"), add_all<double>("f64"), 0);

}  // namespace
}  // namespace heedful
