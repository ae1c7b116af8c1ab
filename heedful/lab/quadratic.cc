#include <chrono>
#include <cmath>
#include <limits>

#include "heedful/kernels/matmul.h"
#include "heedful/kernels/softmax.h"
#include "heedful/lab/experiments.h"
#include "heedful/lab/peak_memory.h"
#include "heedful/lab/small.h"
#include "heedful/lab/statistics.h"
#include "heedful/report/claim.h"

namespace heedful {
namespace {

constexpr Index kWidth = 64;
constexpr Index kPairsTimed = Index{1} << 23;  // about how many query-key pairs the trials of one length come to

struct Input {
  Tensor<float, 4> q, k, v;  // [1, 1, T, D]
};

Input draw_input(Index T) {
  Random random(0);
  return {draw_normal<float, 4>(random, {1, 1, T, kWidth}), draw_normal<float, 4>(random, {1, 1, T, kWidth}),
          draw_normal<float, 4>(random, {1, 1, T, kWidth})};
}

// As the article writes it: the whole score matrix, masked, normalized, times the values.
Tensor<float, 4> plain_attention(const Context& context, const Input& in) {
  const Index T = in.q.extent(2);
  Tensor<float, 2> scores({T, T});
  matmul<float>(context, scores.view(), in.q.view()[0][0], in.k.view()[0][0].transpose());
  const float factor = 1 / std::sqrt(static_cast<float>(kWidth));
  for (Index i = 0; i < T; ++i) {
    float* row = &scores(i, 0);
    for (Index j = 0; j <= i; ++j) row[j] *= factor;
    std::fill(row + i + 1, row + T, -std::numeric_limits<float>::infinity());
  }
  softmax_forward<float>(context, scores.view(), scores);
  Tensor<float, 4> out(in.v.extents());
  matmul<float>(context, out.view()[0][0], scores, in.v.view()[0][0]);
  return out;
}

Tensor<float, 4> fused_attention(const Context& context, const Input& in) {
  Tensor<float, 4> out(in.v.extents());
  AttentionOptions<float> options;
  options.causal = true;
  AttentionOutputs<float> outputs;
  outputs.out = out;
  attention_forward<float>(context, outputs, {in.q, in.k, in.v}, options);
  return out;
}

struct Cost {
  double milliseconds = std::numeric_limits<double>::infinity();
  Index bytes = -1;  // that the process grew by at most; −1 where that cannot be measured
};

// The shortest of several trials: load can lengthen a time, never shorten it.
template <class Attention>
Cost cost_of(const Attention& attention, const Context& context, const Input& in, int trials) {
  Cost cost;
  const PeakMemory memory;
  attention(context, in);
  cost.bytes = memory.growth();
  for (int trial = 0; trial < trials; ++trial) {
    const auto start = std::chrono::steady_clock::now();
    attention(context, in);
    cost.milliseconds =
        std::min(cost.milliseconds,
                 std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  return cost;
}

std::string mebibytes(Index bytes) {
  return bytes < 0 ? "not measured" : fmt::format("{:.2f}", static_cast<double>(bytes) / (1 << 20));
}

}  // namespace

void run_quadratic(Report& report, const Lab& lab) {
  const std::string source = "article, §O(T²)";
  const Context one(1);
  Table table{"one causal head of width 64, float, one thread",
              {"T", "plain (ms)", "fused (ms)", "T×T matrix (MiB)", "plain grew by (MiB)", "fused grew by (MiB)"},
              {}};
  std::vector<double> lengths, plain_times, fused_times;
  Curve plain_curve{"plain", {}, {}}, fused_curve{"fused", {}, {}};
  double deviation = 0, fused_share = 0;
  Index matrix_bytes = 0, plain_bytes = -1, fused_bytes = -1;
  const Index longest = lab.full() ? 8192 : 2048;
  for (Index T = 128; T <= longest; T *= 2) {
    lab.progress(static_cast<double>(T) / static_cast<double>(2 * longest), fmt::format("T = {}", T));
    const Input in = draw_input(T);
    const int trials = static_cast<int>(std::clamp<Index>(kPairsTimed / (T * T), 3, 100));
    const Cost plain = cost_of(plain_attention, one, in, trials), fused = cost_of(fused_attention, one, in, trials);
    matrix_bytes = T * T * Index{sizeof(float)};
    table.rows.push_back({fmt::format("{}", T), fmt::format("{:.3f}", plain.milliseconds),
                          fmt::format("{:.3f}", fused.milliseconds), mebibytes(matrix_bytes), mebibytes(plain.bytes),
                          mebibytes(fused.bytes)});
    lengths.push_back(std::log(static_cast<double>(T)));
    plain_times.push_back(std::log(plain.milliseconds));
    fused_times.push_back(std::log(fused.milliseconds));
    for (auto* curve : {&plain_curve, &fused_curve}) curve->x.push_back(static_cast<double>(T));
    plain_curve.y.push_back(plain.milliseconds);
    fused_curve.y.push_back(fused.milliseconds);
    if (T <= 512)
      deviation = std::max(deviation, largest_deviation(plain_attention(one, in), fused_attention(one, in)));
    fused_share = fused.milliseconds / plain.milliseconds;
    plain_bytes = plain.bytes;
    fused_bytes = fused.bytes;
  }
  report.tables.push_back(std::move(table));
  report.curves.push_back({"time of one causal head", "T", "ms", true, true, {plain_curve, fused_curve}});
  // Weighted means of values up to about 4, in float: scores carry (64 + 11)·6e-8 of about 8, weights twice that.
  report.claims.push_back(claim_at_most(
      {"plain and fused give the same output; largest deviation up to T = 512", source}, 4e-4, deviation));
  report.claims.push_back(
      claim_between({"plain: slope of log time against log T (1.99 to 2.04 there; 2 is the law)", source, false},
                    {1.7, 2.4}, fitted_slope(lengths, plain_times)));
  report.claims.push_back(claim_between({"fused: the time stays quadratic; slope", source, false}, {1.5, 2.3},
                                        fitted_slope(lengths, fused_times)));
  report.claims.push_back(claim_that({fmt::format("fused over plain, time at T = {}", longest), source, false},
                                     fused_share < 1, "below 1", fmt::format("{:.2f}", fused_share)));
  if (plain_bytes >= 0) {
    const auto share = [&](Index bytes) { return static_cast<double>(bytes) / static_cast<double>(matrix_bytes); };
    report.claims.push_back(
        claim_at_least({"plain allocates the matrix: growth of the process over T²·4 bytes", source, false}, 0.9,
                       share(plain_bytes)));
    report.claims.push_back(claim_at_most({"fused does not: growth of the process over T²·4 bytes", source, false},
                                          0.3, share(fused_bytes)));
  }
  constexpr Index kLong = 32768;
  report.claims.push_back(claim_equal({"bytes of one head's matrix at T = 32,768 in 16 bits (2 GiB)", source},
                                      Index{1} << 31, kLong * kLong * 2));
  constexpr Index kLength = 2048;
  report.claims.push_back(claim_printed(
      {"T = 2048: the matrix over queries, keys and values together (32 MiB over 3 in 64 bits)", source}, "10.7",
      static_cast<double>(kLength * kLength) / static_cast<double>(3 * kLength * kWidth)));
  report.notes.emplace_back(
      "The process grows by nothing where memory that was given back earlier is used again; the longest is judged.");
  if (!lab.full()) report.notes.emplace_back("Quick: T up to 2048; --full goes to 8192.");
}

}  // namespace heedful
