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
#include "heedful/kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heedful/attention/attention.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

#include "heedful/attention/attention_rows-inl.h"

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
  View<T, 4> dbias;  // [B, H, Tq, Tk]
  View<const T, 4> dout;
  const AttentionSaved<T>& saved;
};

}  // namespace heedful
#endif

HWY_BEFORE_NAMESPACE();
namespace heedful::HWY_NAMESPACE {

// Memory of one task: one allocation, cut into zeroed rows. Behind every row's last column stands a whole vector
// more, so that a row may be read from any column on in whole vectors.
template <class T>
class Scratch {
 public:
  static Index width(Index columns) {
    return padded<T>(columns) + static_cast<Index>(hn::Lanes(hn::ScalableTag<T>()));
  }

  explicit Scratch(Index size) : memory_({size}) {}

  T* row(Index columns) { return rows(1, columns).data(); }
  View<T, 2> rows(Index count, Index columns) {
    T* begin = memory_.data() + used_;
    used_ += count * width(columns);
    HEEDFUL_CHECK(used_ <= memory_.size());
    return View<T, 2>(begin, {count, columns}, {width(columns), 1});
  }
  View<T, 2> copy(View<const T, 2> from) {
    const View<T, 2> to = rows(from.extent(0), from.extent(1));
    for (Index r = 0; r < from.extent(0); ++r) copy_row(to[r], from[r]);
    return to;
  }

  static void copy_row(View<T, 1> to, View<const T, 1> from) {
    T* target = to.data();
    const T* source = from.data();
    for (Index c = 0; c < from.extent(0); ++c, target += to.stride(0), source += from.stride(0)) *target = *source;
  }

 private:
  Tensor<T, 1> memory_;
  Index used_ = 0;
};

// One query's scores. All columns count from `keys.begin`, the first key that any query of the sequence sees.
template <class T>
struct ScoreRow {
  const AttentionCall<T>& call;
  KeyRange keys;
  View<const T, 2> keys_transposed;  // [D, keys]
  View<T, 1> query;                  // [D]
  T* scores;                         // [keys]
  T* cap_slope;                      // [keys] d(capped score)/d(raw score), or none where nobody asks
  std::vector<KeyRange> runs;

  // Fills `runs`, and where a run is, `scores` and `cap_slope`.
  void compute(Index b, Index h, Index i) {
    call.mask.visible_runs(runs, b, h, i);
    if (runs.empty()) return;
    for (KeyRange& run : runs) run = {run.begin - keys.begin, run.end - keys.begin};
    const KeyRange span{runs.front().begin, runs.back().end};
    Scratch<T>::copy_row(query, call.inputs.q[b][h][i]);
    row_times_matrix(scores + span.begin, query.data(), keys_transposed.data() + span.begin,
                     keys_transposed.stride(0), call.shape.D, span.size());
    for (const KeyRange& run : runs) {
      for (Index n = run.begin; n < run.end; ++n) scores[n] *= call.scale;
      if (call.options.softcap > 0) soften(run);
      if (!call.bias.empty()) {
        for (Index n = run.begin; n < run.end; ++n) scores[n] += call.bias(b, h, i, keys.begin + n);
      }
      if (!call.options.alibi_slopes.empty()) {
        const double slope = call.options.alibi_slopes[h];
        const Index position = call.mask.position(b, i) - keys.begin;
        for (Index n = run.begin; n < run.end; ++n) {
          scores[n] -= static_cast<T>(slope * static_cast<double>(std::abs(position - n)));
        }
      }
    }
  }

  void soften(const KeyRange& run) {
    const T cap = static_cast<T>(call.options.softcap);
    tanh_of_quotient(scores + run.begin, cap, run.size());
    for (Index n = run.begin; n < run.end; ++n) {
      const T t = scores[n];
      scores[n] = cap * t;
      if (cap_slope != nullptr) cap_slope[n] = (1 - t) * (1 + t);
    }
  }
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
    const View<T, 1> to = outputs.weights[b][h][i];
    for (Index j = 0; j < to.extent(0); ++j) to[j] = 0;
    for (const KeyRange& run : row.runs) {
      for (Index n = run.begin; n < run.end; ++n) to[row.keys.begin + n] = weights[n];
    }
  }
  if (!outputs.scores.empty()) {
    const View<T, 1> to = outputs.scores[b][h][i];
    for (Index j = 0; j < to.extent(0); ++j) to[j] = kHidden;
    for (const KeyRange& run : row.runs) {
      for (Index n = run.begin; n < run.end; ++n) to[row.keys.begin + n] = row.scores[n];
    }
  }
}

template <class T>
void forward_kv_head(const AttentionCall<T>& call, const AttentionOutputs<T>& outputs, Index b, Index g) {
  const auto& [B, Tq, Tk, H, G, D, E] = call.shape;
  const KeyRange keys = call.mask.range_of_batch(b);
  const auto width = Scratch<T>::width;
  Scratch<T> scratch((D + 2) * width(keys.size()) + (keys.size() + 1) * width(E) + width(D));
  ScoreRow<T> row{.call = call,
                  .keys = keys,
                  .keys_transposed = scratch.copy(call.inputs.k[b][g].slice(0, keys.begin, keys.end).transpose()),
                  .query = scratch.rows(1, D)[0],
                  .scores = scratch.row(keys.size()),
                  .cap_slope = nullptr,
                  .runs = {}};
  const View<T, 2> values = scratch.copy(call.inputs.v[b][g].slice(0, keys.begin, keys.end));  // [keys, E]
  const View<T, 1> out = scratch.rows(1, E)[0];
  T* weights = scratch.row(keys.size());
  for (Index h = g * (H / G); h < (g + 1) * (H / G); ++h) {
    for (Index i = 0; i < Tq; ++i) {
      row.compute(b, h, i);
      T row_max = -std::numeric_limits<T>::infinity();
      for (const KeyRange& run : row.runs) {
        for (Index n = run.begin; n < run.end; ++n) row_max = std::max(row_max, row.scores[n]);
      }
      double sum = 0;  // one double a row costs nothing, and a long row of floats keeps its last digits
      for (const KeyRange& run : row.runs) {
        exp_of_difference(weights + run.begin, row.scores + run.begin, row_max, run.size());
        for (Index n = run.begin; n < run.end; ++n) sum += static_cast<double>(weights[n]);
      }
      const T row_sum = static_cast<T>(sum);
      std::fill_n(out.data(), padded<T>(E), T{0});
      for (const KeyRange& run : row.runs) {
        for (Index n = run.begin; n < run.end; ++n) weights[n] /= row_sum;
        add_row_times_matrix(out.data(), weights + run.begin, &values(run.begin, 0), values.stride(0), run.size(), E);
      }
      Scratch<T>::copy_row(outputs.out[b][h][i], out);
      write_forward_row(outputs, row, weights, row_max, row_sum, b, h, i);
    }
  }
}

template <class T>
void backward_kv_head(const AttentionCall<T>& call, const BackwardViews<T>& views, Index b, Index g) {
  const auto& [B, Tq, Tk, H, G, D, E] = call.shape;
  const KeyRange keys = call.mask.range_of_batch(b);
  const Index n_keys = keys.size();
  const auto width = Scratch<T>::width;
  Scratch<T> scratch((D + E + 4) * width(n_keys) + (2 * n_keys + 2) * width(D) + (n_keys + 1) * width(E));
  const View<const T, 2> k = call.inputs.k[b][g].slice(0, keys.begin, keys.end);
  const View<const T, 2> v = call.inputs.v[b][g].slice(0, keys.begin, keys.end);
  ScoreRow<T> row{.call = call,
                  .keys = keys,
                  .keys_transposed = scratch.copy(k.transpose()),
                  .query = scratch.rows(1, D)[0],
                  .scores = scratch.row(n_keys),
                  .cap_slope = scratch.row(n_keys),
                  .runs = {}};
  const View<T, 2> key_rows = scratch.copy(k),
                   values_transposed = scratch.copy(v.transpose());  // [keys, D], [E, keys]
  const View<T, 2> dkeys = scratch.rows(n_keys, D), dvalues = scratch.rows(n_keys, E);
  const View<T, 1> dout = scratch.rows(1, E)[0], dquery = scratch.rows(1, D)[0];
  T *weights = scratch.row(n_keys), *dscores = scratch.row(n_keys);
  for (Index h = g * (H / G); h < (g + 1) * (H / G); ++h) {
    for (Index i = 0; i < Tq; ++i) {
      row.compute(b, h, i);
      std::fill_n(dquery.data(), padded<T>(D), T{0});
      if (!row.runs.empty()) {
        Scratch<T>::copy_row(dout, views.dout[b][h][i]);
        const View<const T, 1> out = views.saved.out[b][h][i];
        T mean = 0;  // Σ_j P·dP
        for (Index e = 0; e < E; ++e) mean = std::fma(dout[e], out[e], mean);
        const KeyRange span{row.runs.front().begin, row.runs.back().end};
        row_times_matrix(dscores + span.begin, dout.data(), &values_transposed(0, span.begin),
                         values_transposed.stride(0), E, span.size());
        const T row_max = views.saved.row_max(b, h, i), row_sum = views.saved.row_sum(b, h, i);
        for (const KeyRange& run : row.runs) {
          exp_of_difference(weights + run.begin, row.scores + run.begin, row_max, run.size());
          for (Index n = run.begin; n < run.end; ++n) {
            weights[n] /= row_sum;
            dscores[n] = weights[n] * (dscores[n] - mean);
          }
          if (!views.dbias.empty()) {
            for (Index n = run.begin; n < run.end; ++n) views.dbias(b, h, i, keys.begin + n) += dscores[n];
          }
          if (call.options.softcap > 0) {
            for (Index n = run.begin; n < run.end; ++n) dscores[n] *= row.cap_slope[n];
          }
          for (Index n = run.begin; n < run.end; ++n) dscores[n] *= call.scale;
          add_row_times_matrix(dquery.data(), dscores + run.begin, &key_rows(run.begin, 0), key_rows.stride(0),
                               run.size(), D);
          add_outer_product(&dkeys(run.begin, 0), dkeys.stride(0), dscores + run.begin, row.query.data(), run.size(),
                            D);
          add_outer_product(&dvalues(run.begin, 0), dvalues.stride(0), weights + run.begin, dout.data(), run.size(),
                            E);
        }
      }
      Scratch<T>::copy_row(views.gradients.dq[b][h][i], dquery);
    }
  }
  const Tensor<T, 1> zero({std::max(D, E)});  // for the keys that no query sees
  for (Index j = 0; j < Tk; ++j) {
    const bool seen = keys.contains(j);
    Scratch<T>::copy_row(views.gradients.dk[b][g][j], seen ? dkeys[j - keys.begin] : zero.view().slice(0, 0, D));
    Scratch<T>::copy_row(views.gradients.dv[b][g][j], seen ? dvalues[j - keys.begin] : zero.view().slice(0, 0, E));
  }
}

void forward_float(const AttentionCall<float>& call, const AttentionOutputs<float>& outputs, Index b, Index g) {
  forward_kv_head(call, outputs, b, g);
}
void forward_double(const AttentionCall<double>& call, const AttentionOutputs<double>& outputs, Index b, Index g) {
  forward_kv_head(call, outputs, b, g);
}
void backward_float(const AttentionCall<float>& call, const BackwardViews<float>& views, Index b, Index g) {
  backward_kv_head(call, views, b, g);
}
void backward_double(const AttentionCall<double>& call, const BackwardViews<double>& views, Index b, Index g) {
  backward_kv_head(call, views, b, g);
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
  BackwardViews<T> views{gradients, gradients.dbias, dout, saved};
  const bool shared = !views.dbias.empty() && views.dbias.extents() != Extents<4>{B, H, Tq, Tk};
  if (!views.dbias.empty()) views.dbias = broadcast(views.dbias, {B, H, Tq, Tk});
  const auto kernel = backward_kernel<T>();
  const auto work = [&, groups = G](Index task) { kernel(call, views, task / groups, task % groups); };
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
