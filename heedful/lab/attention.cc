#include <array>
#include <limits>

#include "heedful/attention/attention_reference.h"
#include "heedful/core/error.h"
#include "heedful/kernels/matmul.h"
#include "heedful/lab/experiments.h"
#include "heedful/lab/small.h"

#include "heedful/report/claim.h"

namespace heedful {
namespace {

double row_sum_deviation(const Tensor<double, 4>& weights) {
  const Index width = weights.extent(3);
  double largest = 0;
  for (Index row = 0; row < weights.size() / width; ++row) {
    double sum = 0;
    for (Index j = 0; j < width; ++j) sum += weights.data()[row * width + j];
    largest = std::max(largest, std::abs(sum - 1));
  }
  return largest;
}

// The article's first listing: projections of 16 numbers to 8, seed 7.
void measure_first_listing(Report& report, const Lab& lab) {
  constexpr Index B = 2, T = 5, C = 16, D = 8;
  Random random(7);
  const auto x = draw_normal<double, 3>(random, {B, T, C});
  Tensor<double, 4> projected[3];
  for (auto& y : projected) {
    const auto w = draw_normal<double, 2>(random, {C, D}, std::sqrt(double{C}));
    y = Tensor<double, 4>({B, 1, T, D});
    matmul<double>(lab.context(), View<double, 2>(y.data(), {B * T, D}), View<const double, 2>(x.data(), {B * T, C}),
                   w);
  }
  const auto [out, weights] = attend<double>(lab.context(), {projected[0], projected[1], projected[2]});
  report.claims.push_back(
      claim_that({"scores and weights are [B, T, T], the output [B, T, D]", "article, first listing"},
                 weights.extents() == Extents<4>{B, 1, T, T} && out.extents() == Extents<4>{B, 1, T, D},
                 "[2, 5, 5] and [2, 5, 8]",
                 fmt::format("[{}, {}, {}] and [{}, {}, {}]", weights.extent(0), weights.extent(2), weights.extent(3),
                             out.extent(0), out.extent(2), out.extent(3))));
  report.claims.push_back(
      claim_at_most({"each row of the weights sums to 1, to the 12 digits printed", "article, first listing"}, 5e-13,
                    row_sum_deviation(weights)));
}

// How far rounding in T may take an output from the reference: every score is off by at most
// δ = u·(D + 11)·Σ|q||k|/√D, a weight by the share 2δ + (n + 8)·u, and the sum over n keys adds (n + 2)·u.
template <class T>
double rounding_limit(const AttentionInputs<T>& inputs) {
  constexpr double u = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
  const auto D = static_cast<double>(inputs.q.extent(3)), n = static_cast<double>(inputs.k.extent(2));
  double largest_q = 0, largest_k = 0, largest_v = 0;
  const auto norm = [](View<const T, 1> row) {
    double sum = 0;
    for (Index i = 0; i < row.extent(0); ++i) sum += static_cast<double>(row[i]) * static_cast<double>(row[i]);
    return std::sqrt(sum);
  };
  const auto rows = [](View<const T, 4> x, const auto& visit) {
    for (Index b = 0; b < x.extent(0); ++b) {
      for (Index h = 0; h < x.extent(1); ++h) {
        for (Index t = 0; t < x.extent(2); ++t) visit(x[b][h][t]);
      }
    }
  };
  rows(inputs.q, [&](auto row) { largest_q = std::max(largest_q, norm(row)); });
  rows(inputs.k, [&](auto row) { largest_k = std::max(largest_k, norm(row)); });
  rows(inputs.v, [&](auto row) {
    for (Index e = 0; e < row.extent(0); ++e) largest_v = std::max(largest_v, std::abs(static_cast<double>(row[e])));
  });
  const double delta = u * (D + 11) * largest_q * largest_k / std::sqrt(D);
  return 2 * largest_v * (2 * delta + (2 * n + 10) * u);
}

template <class T>
Claim against_reference(Statement statement, const Lab& lab, const AttentionInputs<T>& inputs,
                        const AttentionOptions<T>& options) {
  const auto [out, weights] = attend<T>(lab.context(), inputs, options);
  Tensor<double, 4> reference(out.extents());
  AttentionOutputs<double> outputs;
  outputs.out = reference;
  attention_reference_forward(outputs, inputs, options);
  return claim_at_most(std::move(statement), rounding_limit(inputs), largest_deviation(out, reference));
}

void measure_against_reference(Report& report, const Lab& lab) {
  Random random(7);
  const auto q = draw_normal<double, 4>(random, {2, 1, 5, 8});
  const auto k = draw_normal<double, 4>(random, {2, 1, 5, 8});
  const auto v = draw_normal<double, 4>(random, {2, 1, 5, 8});
  const std::string source = "article, comparison with a library (2.22e-16)";
  report.claims.push_back(against_reference<double>(
      {"largest deviation from the reference, no mask; the limit is what rounding allows", source}, lab, {q, k, v},
      {}));
  AttentionOptions<double> causal;
  causal.causal = true;
  report.claims.push_back(
      against_reference<double>({"largest deviation from the reference, causal", source}, lab, {q, k, v}, causal));

  const Index T = lab.full() ? 1000 : 200;
  const auto grouped_q = draw_normal<float, 4>(random, {2, 6, T + 3, 64});
  const auto grouped_k = draw_normal<float, 4>(random, {2, 2, T + 7, 64});
  const auto grouped_v = draw_normal<float, 4>(random, {2, 2, T + 7, 40});
  Tensor<Index, 1> lengths({2});
  lengths(0) = T + 7;
  lengths(1) = T / 2;
  AttentionOptions<float> options;
  options.key_lengths = lengths;
  options.softcap = 5;
  report.claims.push_back(against_reference<float>(
      {fmt::format("float, {} queries, {} keys, 6 heads on 2, padding, softcap", T + 3, T + 7), ""}, lab,
      {grouped_q, grouped_k, grouped_v}, options));
}

bool refuses(const Lab& lab, const AttentionInputs<double>& inputs) {
  try {
    attend<double>(lab.context(), inputs);
  } catch (const Error&) {
    return true;
  }
  return false;
}

void measure_worked_examples(Report& report, const Lab& lab) {
  const auto q = matrix(1, 1, {0}), k = matrix(2, 1, {0, 0}), v = matrix(2, 1, {2, 8});
  report.claims.push_back(
      claim_printed({"scores (0, 0), values (2, 8): the output is their mean", "G14, worked example"}, "5",
                    attend<double>(lab.context(), {q, k, v}).out(0, 0, 0, 0)));
  const auto one = matrix(1, 1, {1}), logs = matrix(2, 1, {std::log(3.0), 0});
  const auto [out, weights] = attend<double>(lab.context(), {one, logs, v});
  report.claims.push_back(claim_printed({"scores (log 3, 0), values (2, 8)", "G14, worked example"},
                                        "3.50000000000000", out(0, 0, 0, 0)));
  report.claims.push_back(claim_printed({"… with weight 3/4 on the first", "G14, worked example"}, "0.75000000000000",
                                        weights(0, 0, 0, 0)));
  const auto shifted = matrix(2, 1, {std::log(3.0) + 1000, 1000});
  report.claims.push_back(claim_at_most(
      {"1000 added to every score of the row changes nothing but rounding of the scores", "G14, worked example"},
      1e-12, std::abs(attend<double>(lab.context(), {one, shifted, v}).out(0, 0, 0, 0) - 3.5)));
  const auto q3 = Tensor<double, 4>({1, 1, 3, 2}), k5 = Tensor<double, 4>({1, 1, 5, 2});
  const auto v5 = Tensor<double, 4>({1, 1, 5, 4}), v4 = Tensor<double, 4>({1, 1, 4, 5});
  report.claims.push_back(
      claim_that({"four value rows for five keys are refused", "G14.01"},
                 refuses(lab, {q3, k5, v4}) && !refuses(lab, {q3, k5, v5}), "an error for [4, 5], none for [5, 4]",
                 fmt::format("{} for [4, 5], {} for [5, 4]", refuses(lab, {q3, k5, v4}) ? "an error" : "none",
                             refuses(lab, {q3, k5, v5}) ? "an error" : "none")));
}

}  // namespace

void run_attention(Report& report, const Lab& lab) {
  measure_first_listing(report, lab);
  measure_against_reference(report, lab);
  measure_worked_examples(report, lab);
  report.notes.emplace_back(
      "The article compares with PyTorch; here the independent side is heedful's own strict reference, written apart "
      "from the working path, and (in the tests) the ONNX operator cases.");
}

}  // namespace heedful
