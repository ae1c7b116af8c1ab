#include <cmath>

#include "heedful/decoder/cost.h"
#include "heedful/kernels/softmax.h"
#include "heedful/lab/experiments.h"
#include "heedful/lab/small.h"
#include "heedful/report/claim.h"

namespace heedful {
namespace {

void exercise_scale(Report& report, const Lab& lab) {
  constexpr Index D = 64, kDraws = 200000;
  Random random(1);
  double sum = 0, squares = 0;
  for (Index i = 0; i < kDraws; ++i) {
    double dot = 0;
    for (Index d = 0; d < D; ++d) {
      const double q = random.normal();
      dot += q * random.normal();
    }
    sum += dot;
    squares += dot * dot;
  }
  const double n = static_cast<double>(kDraws), variance = squares / n - sum / n * (sum / n);
  // A product of normals has a heavy fourth moment: Var(s²) = 2·64² + 6·64, so the estimate's deviation is 0.21.
  report.claims.push_back(claim_between(
      {"variance of q·k at D = 64, drawn: 64, within four deviations of 200,000 draws", "article, exercise 1.1"},
      {64 - 0.85, 64 + 0.85}, variance));
  const auto ratio = [&](double gap) {
    const auto q = matrix(1, 1, {1}), k = matrix(3, 1, {gap, 0, -1}), v = matrix(3, 1, {0, 0, 0});
    AttentionOptions<double> options;
    options.scale = 1;
    const auto weights = attend<double>(lab.context(), {q, k, v}, options).weights;
    return weights(0, 0, 0, 0) / weights(0, 0, 0, 1);
  };
  report.claims.push_back(
      claim_printed({"two deviations apart, not divided: ratio of the weights, e¹⁶", "article, exercise 1.2"},
                    "8.9e+06", ratio(16)));
  report.claims.push_back(claim_printed({"… divided by 8: e²", "article, exercise 1.2"}, "7.39", ratio(2)));
}

void exercise_budget(Report& report) {
  DecoderConfig config{.context = 8192, .width = 512, .heads = 8, .kv_heads = 8, .layers = 24, .feed_forward = 2048};
  const DecoderCost cost = decoder_cost(config, 4, 2);
  report.claims.push_back(
      claim_equal({"parameters of a block, C = 512", "article, exercise 2.1"}, 3152384, cost.block_parameters));
  report.claims.push_back(claim_equal({"… of 24 blocks", "article, exercise 2.1"}, 75657216, cost.total_parameters));
  report.claims.push_back(claim_printed({"… in 16 bits, MiB", "article, exercise 2.1"}, "144.3",
                                        static_cast<double>(cost.parameter_bytes) / (1 << 20)));
  report.claims.push_back(
      claim_equal({"key-value cache, 8192 positions, 4 requests, 16 bits, bytes", "article, exercise 2.2"},
                  1610612736, cost.kv_cache_bytes));
  report.claims.push_back(
      claim_printed({"cache over weights", "article, exercise 2.3"}, "10.6",
                    static_cast<double>(cost.kv_cache_bytes) / static_cast<double>(cost.parameter_bytes)));
  config.kv_heads = 1;
  report.claims.push_back(
      claim_printed({"cache with one key-value head, GiB (0.188 there, of 0.1875)", "article, exercise 2.3"},
                    "0.1875", static_cast<double>(decoder_cost(config, 4, 2).kv_cache_bytes) / (1 << 30)));
}

void exercise_shapes(Report& report, const Lab& lab) {
  Random random(2);
  const auto q = draw_normal<double, 4>(random, {1, 1, 3, 2}), k = draw_normal<double, 4>(random, {1, 1, 5, 2});
  const auto v = draw_normal<double, 4>(random, {1, 1, 5, 4});
  const auto [out, weights] = attend<double>(lab.context(), {q, k, v});
  report.claims.push_back(claim_that(
      {"Q [3, 2], K [5, 2], V [5, 4]: shapes of weights and output", "G14.01"},
      weights.extent(2) == 3 && weights.extent(3) == 5 && out.extent(2) == 3 && out.extent(3) == 4,
      "[3, 5] and [3, 4]",
      fmt::format("[{}, {}] and [{}, {}]", weights.extent(2), weights.extent(3), out.extent(2), out.extent(3))));
}

void exercise_outputs(Report& report, const Lab& lab) {
  const auto one = matrix(1, 1, {1}), zeros = matrix(2, 1, {0, 0}), logs = matrix(2, 1, {std::log(3.0), 0});
  const auto v = matrix(2, 1, {2, 8});
  report.claims.push_back(claim_printed({"zero scores, values (2, 8)", "G14.02"}, "5.000",
                                        attend<double>(lab.context(), {one, zeros, v}).out(0, 0, 0, 0)));
  report.claims.push_back(claim_printed({"scores (log 3, 0), values (2, 8)", "G14.02"}, "3.500",
                                        attend<double>(lab.context(), {one, logs, v}).out(0, 0, 0, 0)));
  AttentionOptions<double> causal;
  causal.causal = true;
  const auto both = matrix(2, 1, {1, 1});
  const auto right = attend<double>(lab.context(), {both, zeros, v}, causal);
  const auto unmasked = attend<double>(lab.context(), {both, zeros, v});
  report.claims.push_back(claim_printed({"causal, first output", "G14.03"}, "2.000", right.out(0, 0, 0, 0)));
  report.claims.push_back(claim_printed({"causal, second output", "G14.03"}, "5.000", right.out(0, 0, 1, 0)));
  report.claims.push_back(claim_printed({"the wrong first output, zeroed after the softmax", "G14.03"}, "1.000",
                                        unmasked.weights(0, 0, 0, 0) * v(0, 0, 0, 0)));
}

void exercise_gradient(Report& report, const Lab& lab) {
  Tensor<double, 2> p({1, 2}), u({1, 2}), ds({1, 2});
  p(0, 0) = 0.25;
  p(0, 1) = 0.75;
  u(0, 0) = 1;
  u(0, 1) = 3;
  softmax_backward<double>(lab.context(), ds.view(), u, p);
  report.claims.push_back(
      claim_printed({"p = (1/4, 3/4), upstream (1, 3): gradient of the first score", "G14.04"}, "-0.375", ds(0, 0)));
  report.claims.push_back(claim_printed({"… of the second", "G14.04"}, "0.375", ds(0, 1)));
  report.claims.push_back(claim_printed({"… their sum", "G14.04"}, "0", ds(0, 0) + ds(0, 1)));
}

void exercise_bytes(Report& report) {
  DecoderConfig config{.context = 1024, .width = 64, .heads = 8, .kv_heads = 8};
  report.claims.push_back(claim_equal({"bytes of one score array, B = 2, H = 8, N = 1024, 4 bytes", "G14.05"},
                                      67108864, decoder_cost(config, 2, 4).score_bytes));
  config.context = 2048;
  report.claims.push_back(
      claim_equal({"… at N = 2048", "G14.05"}, 268435456, decoder_cost(config, 2, 4).score_bytes));
}

void exercise_contract(Report& report, const Lab& lab) {
  const auto one = matrix(1, 1, {1}), v = matrix(2, 1, {2, 8});
  const auto extreme = matrix(2, 1, {1e4, -1e4});
  report.claims.push_back(claim_printed({"scores ±10⁴ neither overflow nor give NaN", "G14.06"}, "2.000",
                                        attend<double>(lab.context(), {one, extreme, v}).out(0, 0, 0, 0)));
  Tensor<bool, 4> keep({1, 1, 1, 2});
  AttentionOptions<double> options;
  options.keep = keep;
  std::string outcome = "accepted";
  try {
    attend<double>(lab.context(), {one, extreme, v}, options);
  } catch (const Error&) {
    outcome = "refused";
  }
  report.claims.push_back(claim_that({"a row that sees no key", "G14.06"}, outcome == "refused", "refused", outcome));
}

}  // namespace

void run_exercises(Report& report, const Lab& lab) {
  exercise_scale(report, lab);
  exercise_budget(report);
  exercise_shapes(report, lab);
  exercise_outputs(report, lab);
  exercise_gradient(report, lab);
  exercise_bytes(report);
  exercise_contract(report, lab);
}

}  // namespace heedful
