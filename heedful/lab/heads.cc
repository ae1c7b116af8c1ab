#include "heedful/decoder/parameters.h"
#include "heedful/decoder/self_attention.h"
#include "heedful/kernels/matmul.h"
#include "heedful/lab/experiments.h"
#include "heedful/lab/small.h"
#include "heedful/report/claim.h"

namespace heedful {
namespace {

constexpr Index T = 6, C = 64;

struct MultiHead {
  Tensor<double, 2> weights[4];  // query, key, value, output: [C, C]
};

enum class Merge { right, without_transpose };

// x [T, C], no mask. Merged wrongly, the heads' outputs [H, T, D] are read as [T, C] as they lie.
Tensor<double, 2> multi_head(const Lab& lab, const Tensor<double, 2>& x, const MultiHead& model, Index heads,
                             Merge merge = Merge::right) {
  Tensor<double, 2> projected[3];
  for (int i = 0; i < 3; ++i) {
    projected[i] = Tensor<double, 2>({T, C});
    matmul<double>(lab.context(), projected[i].view(), x, model.weights[i]);
  }
  const auto split = [&](Tensor<double, 2>& rows) { return split_heads(rows.view(), 1, heads); };
  Tensor<double, 2> merged({T, C}), y({T, C});
  AttentionOutputs<double> outputs;
  outputs.out = merge == Merge::right ? split(merged) : View<double, 4>(merged.data(), {1, heads, T, C / heads});
  attention_forward<double>(lab.context(), outputs, {split(projected[0]), split(projected[1]), split(projected[2])},
                            {});
  matmul<double>(lab.context(), y.view(), merged, model.weights[3]);
  return y;
}

Tensor<double, 2> permuted(const Tensor<double, 2>& rows, const std::vector<Index>& order) {
  Tensor<double, 2> result(rows.extents());
  for (Index t = 0; t < rows.extent(0); ++t) {
    for (Index c = 0; c < rows.extent(1); ++c) result(t, c) = rows(order[static_cast<std::size_t>(t)], c);
  }
  return result;
}

void measure_parameters(Report& report) {
  Table table{"parameters of the four projections, width 64", {"heads", "head width", "4·C²"}, {}};
  Index different = 0;
  for (const Index heads : {1, 2, 4, 8}) {
    DecoderConfig config{.vocabulary = 21, .context = 13, .width = C};
    config.heads = config.kv_heads = heads;
    Index weights = 0;
    for (const auto& entry : parameter_inventory(config)) {
      if (entry.name.starts_with("block.0.attention.") && entry.name.ends_with(".weight")) weights += entry.size();
    }
    different += weights != 4 * C * C;
    table.rows.push_back({fmt::format("{}", heads), fmt::format("{}", C / heads), fmt::format("{}", weights)});
  }
  report.tables.push_back(std::move(table));
  report.claims.push_back(claim_equal(
      {"head counts (of 1, 2, 4, 8) whose projections do not hold 4·64² = 16384 numbers", "article, §multiple heads"},
      0, different));
}

}  // namespace

void run_heads(Report& report, const Lab& lab) {
  const std::string source = "article, §multiple heads";
  measure_parameters(report);
  Random random(11);
  const auto x = draw_normal<double, 2>(random, {T, C});
  MultiHead model;
  for (auto& w : model.weights) w = draw_normal<double, 2>(random, {C, C}, std::sqrt(double{C}));
  const std::vector<Index> order = random.permutation(T);
  const auto y = multi_head(lab, x, model, 4);
  const auto y_permuted = multi_head(lab, permuted(x, order), model, 4);
  // Rows of 64 numbers near 1 through three products and a sum in another order: 4·64 roundings of 1.1e-16.
  report.claims.push_back(
      claim_at_most({"permuting the tokens permutes the output: largest deviation (4.4e-16 there)", source}, 3e-14,
                    largest_deviation(y_permuted, permuted(y, order))));
  report.claims.push_back(
      claim_printed({"… against the output as it was", source}, "1.849e+00", largest_deviation(y_permuted, y)));
  report.claims.push_back(
      claim_at_least({"heads merged without the transpose, four heads: deviation", "article, trap 3"}, 0.1,
                     largest_deviation(multi_head(lab, x, model, 4, Merge::without_transpose), y)));
  const auto one_head = multi_head(lab, x, model, 1);
  report.claims.push_back(
      claim_at_most({"… and with one head, where the mistake is no mistake", "article, trap 3"}, 0,
                    largest_deviation(multi_head(lab, x, model, 1, Merge::without_transpose), one_head)));
}

}  // namespace heedful
