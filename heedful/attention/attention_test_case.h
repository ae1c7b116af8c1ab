// Test support: random attention problems that own their memory, the working paths and the reference run on them, and
// how far apart rounding alone may set the two.
#ifndef HEEDFUL_ATTENTION_ATTENTION_TEST_CASE_H_
#define HEEDFUL_ATTENTION_ATTENTION_TEST_CASE_H_

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "heedful/attention/attention.h"
#include "heedful/attention/attention_reference.h"
#include "heedful/attention/attention_shapes.h"
#include "heedful/core/error.h"
#include "heedful/core/random.h"
#include "heedful/core/tensor.h"

namespace heedful {

// A problem. What `settings` holds of views is replaced by the tensors here; an empty tensor is not given.
template <class T>
struct AttentionCase {
  AttentionShape shape{};
  AttentionOptions<T> settings;
  Tensor<T, 4> q, k, v, dout, bias;
  Tensor<double, 1> alibi_slopes;
  Tensor<bool, 4> keep;
  Tensor<Index, 1> query_offsets, key_lengths;
  Tensor<Index, 2> query_documents, key_documents;
  std::string description;

  AttentionInputs<T> inputs() const { return {.q = q, .k = k, .v = v}; }
  AttentionOptions<T> options() const {
    AttentionOptions<T> options = settings;
    options.bias = bias;
    options.alibi_slopes = alibi_slopes;
    options.keep = keep;
    options.query_offsets = query_offsets;
    options.key_lengths = key_lengths;
    options.query_documents = query_documents;
    options.key_documents = key_documents;
    return options;
  }
  AttentionCase copy() const {
    const auto copied = [](const auto& tensor) {  // a tensor that is not given stays so
      return tensor.data() == nullptr ? std::remove_cvref_t<decltype(tensor)>() : tensor.copy();
    };
    AttentionCase c;
    c.shape = shape, c.settings = settings, c.description = description;
    c.q = copied(q), c.k = copied(k), c.v = copied(v), c.dout = copied(dout), c.bias = copied(bias);
    c.alibi_slopes = copied(alibi_slopes), c.keep = copied(keep);
    c.query_offsets = copied(query_offsets), c.key_lengths = copied(key_lengths);
    c.query_documents = copied(query_documents), c.key_documents = copied(key_documents);
    return c;
  }
};

template <class T>
struct AttentionResults {
  Tensor<T, 4> out, weights, scores, dq, dk, dv, dbias;
  Tensor<T, 3> row_max, row_sum, log_sum_exp;

  AttentionResults(const AttentionShape& s, const Extents<4>& bias_extents)
      : out({s.B, s.H, s.Tq, s.E}),
        weights({s.B, s.H, s.Tq, s.Tk}),
        scores({s.B, s.H, s.Tq, s.Tk}),
        dq({s.B, s.H, s.Tq, s.D}),
        dk({s.B, s.G, s.Tk, s.D}),
        dv({s.B, s.G, s.Tk, s.E}),
        dbias(bias_extents),
        row_max({s.B, s.H, s.Tq}),
        row_sum({s.B, s.H, s.Tq}),
        log_sum_exp({s.B, s.H, s.Tq}) {}

  AttentionOutputs<T> outputs() {
    return {.out = out,
            .row_max = row_max,
            .row_sum = row_sum,
            .log_sum_exp = log_sum_exp,
            .weights = weights,
            .scores = scores};
  }
  AttentionGradients<T> gradients(bool with_bias) {
    return {.dq = dq, .dk = dk, .dv = dv, .dbias = with_bias ? dbias.view() : View<T, 4>()};
  }
};

// Forward and backward, everything asked for.
template <class T>
AttentionResults<T> run_attention(const AttentionCase<T>& problem, const Context& context = Context()) {
  AttentionResults<T> results(problem.shape, problem.bias.extents());
  const bool with_bias = problem.bias.data() != nullptr;
  attention_forward<T>(context, results.outputs(), problem.inputs(), problem.options());
  attention_backward<T>(context, results.gradients(with_bias), problem.dout, problem.inputs(),
                        {.out = results.out, .row_max = results.row_max, .row_sum = results.row_sum},
                        problem.options());
  return results;
}
template <class T>
AttentionResults<double> run_reference(const AttentionCase<T>& problem) {
  AttentionResults<double> results(problem.shape, problem.bias.extents());
  const bool with_bias = problem.bias.data() != nullptr;
  attention_reference_forward<T>(results.outputs(), problem.inputs(), problem.options());
  attention_reference_backward<T>(results.gradients(with_bias), problem.dout, problem.inputs(), problem.options());
  return results;
}

// Whether two tensors hold the same bits (NaN equals NaN, +0 differs from −0).
template <class T, int Rank>
bool same_bits(const Tensor<T, Rank>& a, const Tensor<T, Rank>& b) {
  return a.extents() == b.extents() &&
         (a.size() == 0 || std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(T)) == 0);
}
// The name of the first result whose bits differ; empty where none do.
template <class T>
std::string first_difference(const AttentionResults<T>& a, const AttentionResults<T>& b) {
  if (!same_bits(a.out, b.out)) return "out";
  if (!same_bits(a.row_max, b.row_max)) return "row_max";
  if (!same_bits(a.row_sum, b.row_sum)) return "row_sum";
  if (!same_bits(a.log_sum_exp, b.log_sum_exp)) return "log_sum_exp";
  if (!same_bits(a.weights, b.weights)) return "weights";
  if (!same_bits(a.scores, b.scores)) return "scores";
  if (!same_bits(a.dq, b.dq)) return "dq";
  if (!same_bits(a.dk, b.dk)) return "dk";
  if (!same_bits(a.dv, b.dv)) return "dv";
  if (!same_bits(a.dbias, b.dbias)) return "dbias";
  return "";
}

template <class T, int Rank>
void fill_normal(Random& random, Tensor<T, Rank>& tensor, double deviation = 1) {
  for (T& x : tensor) x = static_cast<T>(deviation * random.normal());
}

// What a random problem may contain; each is then used in about half of the problems. All of them by default.
struct CaseFeatures {
  bool scale = true, softcap = true, bias = true, alibi = true, alignment = true, causal = true, window = true;
  bool keep = true, key_lengths = true, documents = true;
  bool large_scores = true;     // up to about ±1e4
  bool degenerate_keys = true;  // all equal (ties), or rank one
  Index max_length = 19, max_width = 19;

  static CaseFeatures none() {
    return {.scale = false,
            .softcap = false,
            .bias = false,
            .alibi = false,
            .alignment = false,
            .causal = false,
            .window = false,
            .keep = false,
            .key_lengths = false,
            .documents = false,
            .large_scores = false,
            .degenerate_keys = false};
  }
};

template <class T>
AttentionCase<T> random_case(Random& random, const CaseFeatures& features = {}) {
  const auto coin = [&random](bool allowed) { return allowed && random.integer(0, 2) == 1; };
  const auto between = [&random](Index low, Index high) { return static_cast<Index>(random.integer(low, high + 1)); };
  AttentionCase<T> c;
  AttentionShape& s = c.shape;
  s = {.B = between(1, 3),
       .Tq = between(1, features.max_length),
       .Tk = between(1, features.max_length),
       .H = 0,
       .G = between(1, 3),
       .D = between(1, features.max_width),
       .E = between(1, features.max_width)};
  s.H = s.G * between(1, 3);
  AttentionOptions<T>& o = c.settings;
  o.empty_row = EmptyRow::zero;  // random masks leave some rows empty

  const bool large = coin(features.large_scores);
  c.q = Tensor<T, 4>({s.B, s.H, s.Tq, s.D});
  c.k = Tensor<T, 4>({s.B, s.G, s.Tk, s.D});
  c.v = Tensor<T, 4>({s.B, s.G, s.Tk, s.E});
  c.dout = Tensor<T, 4>({s.B, s.H, s.Tq, s.E});
  fill_normal(random, c.q, large ? 60 : 1);
  fill_normal(random, c.k, large ? 60 : 1);
  fill_normal(random, c.v);
  fill_normal(random, c.dout);
  if (coin(features.degenerate_keys)) {
    const bool equal = coin(true);
    for (Index b = 0; b < s.B; ++b) {
      for (Index g = 0; g < s.G; ++g) {
        for (Index j = 1; j < s.Tk; ++j) {
          const T factor = equal ? T{1} : static_cast<T>(random.normal());
          for (Index d = 0; d < s.D; ++d) c.k(b, g, j, d) = factor * c.k(b, g, Index{0}, d);
        }
      }
    }
    c.description += equal ? "equal keys, " : "rank-one keys, ";
  }
  if (coin(features.scale)) o.scale = random.integer(0, 4) == 0 ? 1.0 : random.normal();
  if (coin(features.softcap)) o.softcap = std::exp(3 * random.normal());
  if (coin(features.bias)) {
    c.bias = Tensor<T, 4>({coin(true) ? s.B : 1, coin(true) ? s.H : 1, s.Tq, s.Tk});
    const bool hides = coin(true);
    fill_normal(random, c.bias, large ? 1000 : 2);
    for (T& x : c.bias) {
      if (hides && random.integer(0, 4) == 0) x = -std::numeric_limits<T>::infinity();
    }
  }
  if (coin(features.alibi)) {
    c.alibi_slopes = Tensor<double, 1>({s.H});
    for (double& slope : c.alibi_slopes) slope = std::abs(random.normal());
  }
  o.causal = coin(features.causal);
  if (coin(features.window)) o.window = between(1, s.Tk + 1);
  constexpr Alignment kAlignments[] = {Alignment::top_left, Alignment::bottom_right, Alignment::offsets};
  o.alignment = kAlignments[features.alignment ? random.integer(0, 3) : 1];
  if (o.alignment == Alignment::offsets) {
    c.query_offsets = Tensor<Index, 1>({s.B});
    for (Index& offset : c.query_offsets) offset = between(-2, s.Tk);
  }
  if (coin(features.keep)) {
    c.keep = Tensor<bool, 4>({coin(true) ? s.B : 1, coin(true) ? s.H : 1, s.Tq, s.Tk});
    for (bool& keep : c.keep) keep = random.integer(0, 3) > 0;
  }
  if (coin(features.key_lengths)) {
    c.key_lengths = Tensor<Index, 1>({s.B});
    for (Index& length : c.key_lengths) length = between(0, s.Tk);
  }
  if (coin(features.documents)) {
    c.query_documents = Tensor<Index, 2>({s.B, s.Tq});
    c.key_documents = Tensor<Index, 2>({s.B, s.Tk});
    for (Index& document : c.query_documents) document = between(0, 2);
    for (Index& document : c.key_documents) document = between(0, 2);
  }
  c.description += fmt::format(
      "B={} H={} G={} Tq={} Tk={} D={} E={} scale={} softcap={} bias={} alibi={} alignment={} causal={} window={} "
      "keep={} "
      "key_lengths={} documents={} large={}",
      s.B, s.H, s.G, s.Tq, s.Tk, s.D, s.E, o.scale.value_or(0), o.softcap, shape_text(c.bias.extents()),
      c.alibi_slopes.size(), static_cast<int>(o.alignment), o.causal, o.window, shape_text(c.keep.extents()),
      c.key_lengths.size(), c.key_documents.size(), large);
  return c;
}

// What call() says where it throws Error, "accepted" where it does not.
std::string refused(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace heedful

#endif  // HEEDFUL_ATTENTION_ATTENTION_TEST_CASE_H_
