#include "heedful/inspection/diagnose_check.h"

#include <algorithm>

#include "heedful/core/error.h"

namespace heedful {
namespace {

template <class T>
Tensor<T, 4> narrowed(const Tensor<double, 4>& x) {
  Tensor<T, 4> result(x.extents());
  std::ranges::transform(x, result.begin(), [](double value) { return static_cast<T>(value); });
  return result;
}

template <class T, int Rank>
Tensor<double, Rank> widened(const Tensor<T, Rank>& x) {
  Tensor<double, Rank> result(x.extents());
  std::ranges::copy(x, result.begin());
  return result;
}

template <int Rank>
View<const Index, Rank> rows(const std::vector<Index>& values, const Extents<Rank>& extents) {
  return values.empty() ? View<const Index, Rank>() : View<const Index, Rank>(values.data(), extents);
}

// Views into `given` and `bias`, which must outlive the options.
template <class T>
AttentionOptions<T> options_of(const AttentionCase& given, const Tensor<T, 4>& bias) {
  const DeclaredAttention& declared = given.declared;
  AttentionOptions<T> options;
  options.scale = declared.scale;
  options.softcap = declared.softcap;
  if (is_given(bias)) options.bias = bias;
  if (is_given(given.keep)) options.keep = given.keep;
  options.causal = declared.causal;
  options.window = declared.window;
  options.alignment = declared.alignment;
  options.query_offsets = rows<1>(declared.query_offsets, {given.B()});
  options.key_lengths = rows<1>(declared.key_lengths, {given.B()});
  options.query_documents = rows<2>(declared.query_documents, {given.B(), given.Tq()});
  options.key_documents = rows<2>(declared.key_documents, {given.B(), given.Tk()});
  options.empty_row = EmptyRow::zero;
  return options;
}

}  // namespace

Diagnosis check_attention(const Context& context, const Answers& answers, const ProbeOptions& options) {
  std::vector<Observation> observations;
  for (AttentionCase& probe : standard_probes(options)) {
    AttentionAnswer answer = answers(probe);
    observations.push_back({std::move(probe), std::move(answer)});
  }
  DiagnoseOptions without_counterexample;
  without_counterexample.counterexample = false;
  Diagnosis diagnosis = diagnose(context, observations, without_counterexample);
  if (!diagnosis.is_correct()) diagnosis.counterexample = find_counterexample(answers, observations);
  return diagnosis;
}

template <class T>
AttentionAnswer answer_with(const AttentionUnderTest<T>& attention, const AttentionCase& given) {
  require(!given.declared.rotary && !given.declared.left_padded, "diagnose",
          "case: expected neither rotary positions nor left padding, got one of them");
  const Tensor<T, 4> q = narrowed<T>(given.q), k = narrowed<T>(given.k), v = narrowed<T>(given.v);
  const Tensor<T, 4> bias = narrowed<T>(given.bias), dout = narrowed<T>(given.dout);
  const AttentionInputs<T> inputs{q, k, v};
  const AttentionOptions<T> options = options_of(given, bias);
  const Extents<3> row{given.B(), given.H(), given.Tq()};
  Tensor<T, 4> out({given.B(), given.H(), given.Tq(), given.E()}),
      weights({given.B(), given.H(), given.Tq(), given.Tk()});
  Tensor<T, 3> row_max(row), row_sum(row), lse(row);
  attention.forward({out, row_max, row_sum, lse, weights, {}}, inputs, options);
  AttentionAnswer answer;
  answer.out = widened(out);
  answer.weights = widened(weights);
  answer.lse = widened(lse);
  if (!attention.backward || !given.has_gradients()) return answer;
  Tensor<T, 4> dq(q.extents()), dk(k.extents()), dv(v.extents());
  attention.backward({dq, dk, dv, {}}, dout, inputs, {out, row_max, row_sum}, options);
  answer.dq = widened(dq);
  answer.dk = widened(dk);
  answer.dv = widened(dv);
  return answer;
}

template <class T>
Diagnosis check_attention(const Context& context, const AttentionUnderTest<T>& attention, ProbeOptions options) {
  options.features.rotary = options.features.left_padding = false;
  options.features.gradients = options.features.gradients || attention.backward;
  if (options.type != DataType::f64) options.type = sizeof(T) == 8 ? DataType::f64 : options.type;
  return check_attention(context, [&](const AttentionCase& given) { return answer_with(attention, given); }, options);
}

template AttentionAnswer answer_with<float>(const AttentionUnderTest<float>&, const AttentionCase&);
template AttentionAnswer answer_with<double>(const AttentionUnderTest<double>&, const AttentionCase&);
template Diagnosis check_attention<float>(const Context&, const AttentionUnderTest<float>&, ProbeOptions);
template Diagnosis check_attention<double>(const Context&, const AttentionUnderTest<double>&, ProbeOptions);

}  // namespace heedful
