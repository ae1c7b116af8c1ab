// The path that stores a row of scores and no matrix of them: every query is worked through alone, over its visible
// keys in ascending order, so its bits depend on nothing but its own row, keys and values.
#include "heedful/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "heedful/attention/attention_shapes.h"
#include "heedful/attention/mask.h"
#include "heedful/core/tensor.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heedful/attention/attention.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

// clang-format off
#include "heedful/attention/attention_rows-inl.h"
// clang-format on

#ifndef HEEDFUL_ATTENTION_ATTENTION_CALL_
#define HEEDFUL_ATTENTION_ATTENTION_CALL_
namespace heedful {

template <class T>
struct AttentionCall {
  AttentionCall(const AttentionInputs<T>& in, const AttentionOptions<T>& opt)
      : shape(check_attention(in, opt)),
        inputs(in),
        options(opt),
        mask(shape, opt),
        scale(static_cast<T>(score_scale(shape, opt))) {
    if (!opt.bias.empty()) bias = broadcast(opt.bias, {shape.B, shape.H, shape.Tq, shape.Tk});
    if (opt.empty_row == EmptyRow::refuse) mask.refuse_empty_rows();
  }

  AttentionShape shape;
  const AttentionInputs<T>& inputs;
  const AttentionOptions<T>& options;
  AttentionMask<T> mask;
  T scale;
  View<const T, 4> bias;  // [B, H, Tq, Tk]
};

template <class T>
struct BackwardViews {
  const AttentionGradients<T>& gradients;
  View<const T, 4> dout;
  const AttentionSaved<T>& saved;
};

}  // namespace heedful
#endif

HWY_BEFORE_NAMESPACE();
namespace heedful::HWY_NAMESPACE {

template <class T>
void copy_row(T* to, View<const T, 1> from) {
  for (Index c = 0; c < from.extent(0); ++c) to[c] = from[c];
}
template <class T>
void copy_row(View<T, 1> to, const T* from) {
  for (Index c = 0; c < to.extent(0); ++c) to[c] = from[c];
}

// The rows of `from` next to each other, padded by at least `slack` zeros.
template <class T>
Tensor<T, 2> packed(View<const T, 2> from, Index slack = 0) {
  Tensor<T, 2> to({from.extent(0), padded<T>(from.extent(1) + slack)});
  for (Index r = 0; r < from.extent(0); ++r) copy_row(&to(r, 0), from[r]);
  return to;
}

// A row of scores starts at any key and is read in whole vectors: one vector past the last key must be there.
template <class T>
Tensor<T, 2> packed_transpose(View<const T, 2> from) {
  return packed<T>(from.transpose(), static_cast<Index>(hn::Lanes(hn::ScalableTag<T>())));
}

// The rows of one key-value head, and one query's scores on them. All columns count from `keys.begin`.
template <class T>
class ScoreRow {
 public:
  ScoreRow(const AttentionCall<T>& call, Index b, Index g)
      : call_(call),
        keys(call.mask.range_of_batch(b)),
        keys_transposed_(packed_transpose<T>(call.inputs.k[b][g].slice(0, keys.begin, keys.end))),
        query({padded<T>(call.shape.D)}),
        scores({keys_transposed_.extent(1)}) {}

  // Fills `runs`, and where a run is, `scores`. With `cap_slope` given also d(capped score)/d(raw score).
  void compute(Index b, Index h, Index i, T* cap_slope = nullptr) {
    call_.mask.visible_runs(runs, b, h, i);
    if (runs.empty()) return;
    copy_row(query.data(), call_.inputs.q[b][h][i]);
    const KeyRange span{runs.front().begin - keys.begin, runs.back().end - keys.begin};
    std::fill_n(&scores(span.begin), padded<T>(span.size()), T{0});
    add_row_times_matrix(&scores(span.begin), query.data(), &keys_transposed_(Index{0}, span.begin),
                         keys_transposed_.extent(1), call_.shape.D, span.size());
    const AttentionOptions<T>& options = call_.options;
    for (const KeyRange& run : runs) {
      T* s = &scores(run.begin - keys.begin);
      for (Index n = 0; n < run.size(); ++n) s[n] *= call_.scale;
      if (options.softcap > 0) soften(s, run, cap_slope);
      if (!call_.bias.empty()) {
        for (Index n = 0; n < run.size(); ++n) s[n] += call_.bias(b, h, i, run.begin + n);
      }
      if (!options.alibi_slopes.empty()) {
        const Index position = call_.mask.position(b, i);
        for (Index n = 0; n < run.size(); ++n) {
          const double distance = static_cast<double>(std::abs(position - run.begin - n));
          s[n] -= static_cast<T>(options.alibi_slopes[h] * distance);
        }
      }
    }
  }

 private:
  void soften(T* s, const KeyRange& run, T* cap_slope) const {
    const T cap = static_cast<T>(call_.options.softcap);
    for (Index n = 0; n < run.size(); ++n) {
      const T t = std::tanh(s[n] / cap);
      s[n] = cap * t;
      if (cap_slope != nullptr) cap_slope[run.begin - keys.begin + n] = (1 - t) * (1 + t);
    }
  }

  const AttentionCall<T>& call_;

 public:
  KeyRange keys;

 private:
  Tensor<T, 2> keys_transposed_;  // [D, keys]

 public:
  Tensor<T, 1> query;   // [D]
  Tensor<T, 1> scores;  // [keys]
  std::vector<KeyRange> runs;
};

template <class T>
void write_forward_row(const AttentionOutputs<T>& outputs, const ScoreRow<T>& row, const T* weights, T row_max,
                       T row_sum, Index b, Index h, Index i) {
  constexpr T kHidden = -std::numeric_limits<T>::infinity();
  if (!outputs.row_max.empty()) {
    outputs.row_max(b, h, i) = row_max;
    outputs.row_sum(b, h, i) = row_sum;
  }
  if (!outputs.log_sum_exp.empty()) {
    outputs.log_sum_exp(b, h, i) = row.runs.empty() ? kHidden : row_max + std::log(row_sum);
  }
  if (!outputs.weights.empty()) {
    for (Index j = 0; j < outputs.weights.extent(3); ++j) outputs.weights(b, h, i, j) = 0;
  }
  if (!outputs.scores.empty()) {
    for (Index j = 0; j < outputs.scores.extent(3); ++j) outputs.scores(b, h, i, j) = kHidden;
  }
  for (const KeyRange& run : row.runs) {
    for (Index j = run.begin; j < run.end; ++j) {
      if (!outputs.weights.empty()) outputs.weights(b, h, i, j) = weights[j - row.keys.begin];
      if (!outputs.scores.empty()) outputs.scores(b, h, i, j) = row.scores(j - row.keys.begin);
    }
  }
}

template <class T>
void forward_kv_head(const AttentionCall<T>& call, const AttentionOutputs<T>& outputs, Index b, Index g) {
  const auto& [B, Tq, Tk, H, G, D, E] = call.shape;
  ScoreRow<T> row(call, b, g);
  const Tensor<T, 2> values = packed<T>(call.inputs.v[b][g].slice(0, row.keys.begin, row.keys.end));  // [keys, E]
  Tensor<T, 1> weights(row.scores.extents()), out({values.extent(1)});
  for (Index h = g * (H / G); h < (g + 1) * (H / G); ++h) {
    for (Index i = 0; i < Tq; ++i) {
      row.compute(b, h, i);
      T row_max = -std::numeric_limits<T>::infinity();
      for (const KeyRange& run : row.runs) {
        for (Index j = run.begin; j < run.end; ++j) row_max = std::max(row_max, row.scores(j - row.keys.begin));
      }
      double sum = 0;  // one double a row costs nothing, and a long row of floats keeps its last digits
      for (const KeyRange& run : row.runs) {
        for (Index j = run.begin; j < run.end; ++j) {
          const T e = std::exp(row.scores(j - row.keys.begin) - row_max);
          weights(j - row.keys.begin) = e;
          sum += static_cast<double>(e);
        }
      }
      const T row_sum = static_cast<T>(sum);
      out.fill(0);
      for (const KeyRange& run : row.runs) {
        const Index begin = run.begin - row.keys.begin;
        for (Index n = begin; n < begin + run.size(); ++n) weights(n) /= row_sum;
        add_row_times_matrix(out.data(), &weights(begin), &values(begin, Index{0}), values.extent(1), run.size(), E);
      }
      copy_row(outputs.out[b][h][i], out.data());
      write_forward_row(outputs, row, weights.data(), row_max, row_sum, b, h, i);
    }
  }
}

template <class T>
void backward_kv_head(const AttentionCall<T>& call, const BackwardViews<T>& views, View<T, 4> dbias, Index b,
                      Index g) {
  const auto& [B, Tq, Tk, H, G, D, E] = call.shape;
  const AttentionGradients<T>& gradients = views.gradients;
  ScoreRow<T> row(call, b, g);
  const KeyRange all = row.keys;
  const Tensor<T, 2> keys = packed<T>(call.inputs.k[b][g].slice(0, all.begin, all.end));              // [keys, D]
  const Tensor<T, 2> values = packed_transpose<T>(call.inputs.v[b][g].slice(0, all.begin, all.end));  // [E, keys]
  Tensor<T, 2> dkeys(keys.extents()), dvalues({all.size(), padded<T>(E)});
  Tensor<T, 1> weights(row.scores.extents()), dscores(row.scores.extents()), cap_slope(row.scores.extents());
  Tensor<T, 1> dout({padded<T>(E)}), dquery({padded<T>(D)});
  const bool softcap = call.options.softcap > 0;
  for (Index h = g * (H / G); h < (g + 1) * (H / G); ++h) {
    for (Index i = 0; i < Tq; ++i) {
      row.compute(b, h, i, softcap ? cap_slope.data() : nullptr);
      dquery.fill(0);
      if (!row.runs.empty()) {
        copy_row(dout.data(), views.dout[b][h][i]);
        T mean = 0;  // Σ_j P·dP = dout·out
        for (Index e = 0; e < E; ++e) mean = std::fma(dout(e), views.saved.out(b, h, i, e), mean);
        const T row_max = views.saved.row_max(b, h, i), row_sum = views.saved.row_sum(b, h, i);
        const KeyRange span{row.runs.front().begin - all.begin, row.runs.back().end - all.begin};
        std::fill_n(&dscores(span.begin), padded<T>(span.size()), T{0});
        add_row_times_matrix(&dscores(span.begin), dout.data(), &values(Index{0}, span.begin), values.extent(1), E,
                             span.size());
        for (const KeyRange& run : row.runs) {
          const Index begin = run.begin - all.begin, end = run.end - all.begin;
          for (Index n = begin; n < end; ++n) {
            weights(n) = std::exp(row.scores(n) - row_max) / row_sum;
            dscores(n) = weights(n) * (dscores(n) - mean);
          }
          if (!dbias.empty()) {
            for (Index n = begin; n < end; ++n) dbias(b, h, i, n + all.begin) += dscores(n);
          }
          if (softcap) {
            for (Index n = begin; n < end; ++n) dscores(n) *= cap_slope(n);
          }
          for (Index n = begin; n < end; ++n) dscores(n) *= call.scale;
          add_row_times_matrix(dquery.data(), &dscores(begin), &keys(begin, Index{0}), keys.extent(1), run.size(), D);
          add_outer_product(&dkeys(begin, Index{0}), dkeys.extent(1), &dscores(begin), row.query.data(), run.size(),
                            D);
          add_outer_product(&dvalues(begin, Index{0}), dvalues.extent(1), &weights(begin), dout.data(), run.size(),
                            E);
        }
      }
      copy_row(gradients.dq[b][h][i], dquery.data());
    }
  }
  const Tensor<T, 1> zero({std::max(D, E)});  // for the keys no query sees
  for (Index j = 0; j < Tk; ++j) {
    copy_row(gradients.dk[b][g][j], all.contains(j) ? &dkeys(j - all.begin, Index{0}) : zero.data());
    copy_row(gradients.dv[b][g][j], all.contains(j) ? &dvalues(j - all.begin, Index{0}) : zero.data());
  }
}

void forward_float(const AttentionCall<float>& call, const AttentionOutputs<float>& outputs, Index b, Index g) {
  forward_kv_head(call, outputs, b, g);
}
void forward_double(const AttentionCall<double>& call, const AttentionOutputs<double>& outputs, Index b, Index g) {
  forward_kv_head(call, outputs, b, g);
}
void backward_float(const AttentionCall<float>& call, const BackwardViews<float>& views, View<float, 4> dbias,
                    Index b, Index g) {
  backward_kv_head(call, views, dbias, b, g);
}
void backward_double(const AttentionCall<double>& call, const BackwardViews<double>& views, View<double, 4> dbias,
                     Index b, Index g) {
  backward_kv_head(call, views, dbias, b, g);
}

}  // namespace heedful::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heedful {
namespace {

HWY_EXPORT(forward_float);
HWY_EXPORT(forward_double);
HWY_EXPORT(backward_float);
HWY_EXPORT(backward_double);

template <class T>
auto forward_kernel() {
  if constexpr (std::is_same_v<T, float>) {
    return HWY_DYNAMIC_DISPATCH(forward_float);
  } else {
    return HWY_DYNAMIC_DISPATCH(forward_double);
  }
}
template <class T>
auto backward_kernel() {
  if constexpr (std::is_same_v<T, float>) {
    return HWY_DYNAMIC_DISPATCH(backward_float);
  } else {
    return HWY_DYNAMIC_DISPATCH(backward_double);
  }
}

}  // namespace

template <class T>
void attention_forward(const Context& context, const AttentionOutputs<T>& outputs, const AttentionInputs<T>& inputs,
                       const AttentionOptions<T>& options) {
  const AttentionCall<T> call(inputs, options);
  check_outputs(call.shape, outputs);
  const Index G = call.shape.G;
  const auto kernel = forward_kernel<T>();
  context.parallel_for(call.shape.B * G, [&](Index task) { kernel(call, outputs, task / G, task % G); });
}

template <class T>
void attention_backward(const Context& context, const AttentionGradients<T>& gradients, In<T, 4> dout,
                        const AttentionInputs<T>& inputs, const AttentionSaved<T>& saved,
                        const AttentionOptions<T>& options) {
  const AttentionCall<T> call(inputs, options);
  check_backward(call.shape, gradients, dout, saved, options);
  const auto& [B, Tq, Tk, H, G, D, E] = call.shape;
  const BackwardViews<T> views{gradients, dout, saved};
  const auto kernel = backward_kernel<T>();
  View<T, 4> dbias = gradients.dbias;
  const bool shared = !dbias.empty() && dbias.extents() != Extents<4>{B, H, Tq, Tk};
  if (!dbias.empty()) dbias = broadcast(dbias, {B, H, Tq, Tk});
  const auto work = [&, groups = G](Index task) { kernel(call, views, dbias, task / groups, task % groups); };
  if (shared) {  // sequences or heads that share a bias add into it in ascending order
    for (Index task = 0; task < B * G; ++task) work(task);
  } else {
    context.parallel_for(B * G, work);
  }
}

#define HEEDFUL_INSTANTIATE(T)                                                                              \
  template void attention_forward<T>(const Context&, const AttentionOutputs<T>&, const AttentionInputs<T>&, \
                                     const AttentionOptions<T>&);                                           \
  template void attention_backward<T>(const Context&, const AttentionGradients<T>&, In<T, 4>,               \
                                      const AttentionInputs<T>&, const AttentionSaved<T>&,                  \
                                      const AttentionOptions<T>&);
HEEDFUL_INSTANTIATE(float)
HEEDFUL_INSTANTIATE(double)
#undef HEEDFUL_INSTANTIATE

}  // namespace heedful
#endif  // HWY_ONCE
