#include "heedful/lab/position_probe.h"

#include <cmath>
#include <vector>

#include "heedful/lab/altered_forward.h"

namespace heedful {
namespace {

constexpr Index kSequences = 400, kLength = 12;
constexpr double kRidge = 1e-3;  // of the rows' mean square: enough to be solvable, too little to matter

// Solves A·x = b for symmetric positive definite A [n, n], in place, by Cholesky's factors.
std::vector<double> solve(Tensor<double, 2> a, std::vector<double> b) {
  const Index n = a.extent(0);
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j <= i; ++j) {
      double sum = a(i, j);
      for (Index k = 0; k < j; ++k) sum -= a(i, k) * a(j, k);
      a(i, j) = i == j ? std::sqrt(sum) : sum / a(j, j);
    }
  }
  const auto at = [&](Index i) -> double& { return b[static_cast<std::size_t>(i)]; };
  for (Index i = 0; i < n; ++i) {
    for (Index k = 0; k < i; ++k) at(i) -= a(i, k) * at(k);
    at(i) /= a(i, i);
  }
  for (Index i = n - 1; i >= 0; --i) {
    for (Index k = i + 1; k < n; ++k) at(i) -= a(k, i) * at(k);
    at(i) /= a(i, i);
  }
  return b;
}

// Weights [C + 1] of the ridge regression of the position on rows [N, C], the last one the constant.
std::vector<double> fit(View<const float, 2> rows) {
  const Index C = rows.extent(1);
  Tensor<double, 2> gram({C + 1, C + 1});
  std::vector<double> right(static_cast<std::size_t>(C + 1));
  const auto entry = [&](Index n, Index c) { return c < C ? static_cast<double>(rows(n, c)) : 1.0; };
  double square = 0;
  for (Index n = 0; n < rows.extent(0); ++n) {
    for (Index i = 0; i <= C; ++i) {
      right[static_cast<std::size_t>(i)] += entry(n, i) * static_cast<double>(n % kLength);
      for (Index j = 0; j <= i; ++j) gram(i, j) += entry(n, i) * entry(n, j);
      if (i < C) square += entry(n, i) * entry(n, i) / static_cast<double>(C);
    }
  }
  for (Index i = 0; i < C; ++i) gram(i, i) += kRidge * square;
  return solve(std::move(gram), std::move(right));
}

double explained(View<const float, 2> rows, const std::vector<double>& weights) {
  const double middle = static_cast<double>(kLength - 1) / 2;
  double residual = 0, variance = 0;
  for (Index n = 0; n < rows.extent(0); ++n) {
    double prediction = weights.back();
    for (Index c = 0; c < rows.extent(1); ++c) {
      prediction += weights[static_cast<std::size_t>(c)] * static_cast<double>(rows(n, c));
    }
    const auto position = static_cast<double>(n % kLength);
    residual += (position - prediction) * (position - prediction);
    variance += (position - middle) * (position - middle);
  }
  return 1 - residual / variance;
}

}  // namespace

double position_probe(const Context& context, const Decoder<float>& decoder, ProbeMask mask) {
  Random random(31);
  Tensor<Index, 2> tokens({kSequences, kLength});
  for (Index& token : tokens) token = random.integer(0, decoder.config.vocabulary - 1);  // no separator
  Activations<float> activations;
  altered_forward<float>(context, activations, decoder, tokens, [&](AttentionOptions<float>& options, Index) {
    options.causal = mask == ProbeMask::causal;
  });
  const View<const float, 2> rows = activations.blocks.back().output.view();
  const Index half = rows.extent(0) / 2;
  return explained(rows.slice(0, half, 2 * half), fit(rows.slice(0, 0, half)));
}

Decoder<float> untrained(const DecoderConfig& config) {
  Random random(0);
  return {config, initial_parameters<float>(config, random)};
}

}  // namespace heedful
