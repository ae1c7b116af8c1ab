#include <bit>
#include <cstdint>
#include <limits>
#include <string>

#include "heedful/attention/attention_shapes.h"
#include "heedful/attention/mask.h"
#include "heedful/lab/experiments.h"
#include "heedful/lab/small.h"
#include "heedful/report/claim.h"
#include "heedful/training/options.h"
#include "heedful/training/trainer.h"

namespace heedful {
namespace {

constexpr Index T = 5;

// The article's two matrices, as printed: weights hidden before the softmax, and zeroed after it.
constexpr const char* kBefore[T][T] = {{"1.000", "0.000", "0.000", "0.000", "0.000"},
                                       {"0.859", "0.141", "0.000", "0.000", "0.000"},
                                       {"0.462", "0.259", "0.278", "0.000", "0.000"},
                                       {"0.119", "0.285", "0.138", "0.458", "0.000"},
                                       {"0.115", "0.529", "0.194", "0.068", "0.094"}};
constexpr const char* kSumsAfter[T] = {"0.733", "0.031", "0.759", "0.874", "1.000"};

// Weights of given scores: queries are the scores, keys the identity.
Tensor<double, 4> weights_of(const Lab& lab, const Tensor<double, 4>& scores, bool causal) {
  AttentionOptions<double> options;
  options.scale = 1;
  options.causal = causal;
  return attend<double>(lab.context(), {scores, identity(T), identity(T)}, options).weights;
}

Table matrix_table(std::string title, const Tensor<double, 4>& m) {
  Table table{std::move(title), {"query", "key 0", "key 1", "key 2", "key 3", "key 4", "sum"}, {}};
  for (Index i = 0; i < T; ++i) {
    table.rows.push_back({fmt::format("{}", i)});
    double sum = 0;
    for (Index j = 0; j < T; ++j) {
      table.rows.back().push_back(fmt::format("{:.3f}", m(0, 0, i, j)));
      sum += m(0, 0, i, j);
    }
    table.rows.back().push_back(fmt::format("{:.3f}", sum));
  }
  return table;
}

void measure_order(Report& report, const Lab& lab) {
  const std::string source = "article, §causal mask";
  Random random(3);
  const auto scores = draw_normal<double, 4>(random, {1, 1, T, T});
  const auto before = weights_of(lab, scores, true);
  auto after = weights_of(lab, scores, false);
  Index same_before = 0, same_sums = 0;
  for (Index i = 0; i < T; ++i) {
    double sum = 0;
    for (Index j = 0; j < T; ++j) {
      if (j > i) after(0, 0, i, j) = 0;
      sum += after(0, 0, i, j);
      same_before += fmt::format("{:.3f}", before(0, 0, i, j)) == kBefore[i][j];
    }
    same_sums += fmt::format("{:.3f}", sum) == kSumsAfter[i];
  }
  report.claims.push_back(claim_equal(
      {"the 25 weights of the matrix hidden before the softmax, to the digit printed", source}, T * T, same_before));
  report.claims.push_back(claim_equal(
      {"the 5 row sums of the matrix zeroed after the softmax (0.733 0.031 0.759 0.874 1)", source}, T, same_sums));
  report.claims.push_back(claim_printed({"largest deviation between the two matrices", source}, "0.8317",
                                        largest_deviation(before, after)));
  report.tables.push_back(matrix_table("hidden before the softmax", before));
  report.tables.push_back(matrix_table("zeroed after the softmax: rows no longer sum to 1", after));
}

void measure_combination(Report& report) {
  Tensor<Index, 1> lengths({2});
  lengths(0) = 5;
  lengths(1) = 3;
  AttentionOptions<double> options;
  options.causal = true;
  options.key_lengths = lengths;
  const AttentionMask<double> mask({2, T, T, 1, 1, 1, 1}, options);
  std::string rows;
  for (Index i = 0; i < T; ++i) {
    if (i > 0) rows += ' ';
    for (Index j = 0; j < T; ++j) rows += mask.sees(1, 0, i, j) ? '1' : '0';
  }
  const std::string expected = "10000 11000 11100 11100 11100";
  report.claims.push_back(
      claim_that({"causal AND padding, three real tokens of five: the combined mask", "article, §causal mask"},
                 rows == expected, expected, rows));
}

// Changes everything hidden, to NaN, and counts what changed in the results: nothing may.
void measure_hidden_keys(Report& report, const Lab& lab) {
  constexpr Index B = 2, H = 4, G = 2, L = 37, D = 24;
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  Random random(12);
  const auto q = draw_normal<float, 4>(random, {B, H, L, D});
  const auto k = draw_normal<float, 4>(random, {B, G, L, D});
  const auto v = draw_normal<float, 4>(random, {B, G, L, D});
  Tensor<Index, 1> lengths({B});
  lengths(0) = L;
  lengths(1) = L - 9;
  AttentionOptions<float> options;
  options.causal = true;
  options.key_lengths = lengths;
  const auto base = attend<float>(lab.context(), {q, k, v}, options);
  auto other_k = k.copy(), other_v = v.copy();
  for (auto* x : {&other_k, &other_v}) {
    for (Index g = 0; g < G; ++g) {
      for (Index j = L - 9; j < L; ++j) {
        for (Index d = 0; d < D; ++d) (*x)(1, g, j, d) = nan;
      }
    }
  }
  const auto padded = attend<float>(lab.context(), {q, other_k, other_v}, options);
  report.claims.push_back(
      claim_equal({"padded keys and values set to NaN: outputs and weights that change in any bit",
                   "G14, mask before normalization"},
                  0, changed_bits(base.out, padded.out) + changed_bits(base.weights, padded.weights)));

  constexpr Index kPast = 20;
  other_k = k.copy();
  other_v = v.copy();
  for (auto* x : {&other_k, &other_v}) {
    for (Index b = 0; b < B; ++b) {
      for (Index g = 0; g < G; ++g) {
        for (Index j = kPast; j < L; ++j) {
          for (Index d = 0; d < D; ++d) (*x)(b, g, j, d) = nan;
        }
      }
    }
  }
  const auto future = attend<float>(lab.context(), {q, other_k, other_v}, options);
  Index changed = 0, compared = 0;
  for (Index b = 0; b < B; ++b) {
    for (Index h = 0; h < H; ++h) {
      for (Index i = 0; i < kPast; ++i) {
        for (Index d = 0; d < D; ++d, ++compared) {
          changed += std::bit_cast<std::uint32_t>(base.out(b, h, i, d)) !=
                     std::bit_cast<std::uint32_t>(future.out(b, h, i, d));
        }
      }
    }
  }
  report.claims.push_back(claim_equal(
      {fmt::format("future keys and values set to NaN: of {} earlier outputs, those that change in any bit",
                   compared),
       "G14.06"},
      0, changed));
}

// The same for a whole decoder: other tokens later, the same logits before.
void measure_future_tokens(Report& report, const Lab& lab) {
  TrainOptions options;
  options.model.layers = 3;
  fit_model_to_task(options);
  const auto state = new_training<float>(options);
  constexpr Index kLength = 12, kChanged = 7;
  Random random(1);
  Tensor<Index, 2> tokens({1, kLength});
  for (Index& token : tokens) token = random.integer(0, options.model.vocabulary);
  const auto logits_of = [&](const Tensor<Index, 2>& input) {
    Activations<float> activations;
    const auto logits = decoder_forward<float>(lab.context(), activations, state.decoder, input);
    Tensor<float, 1> copy({kChanged * options.model.vocabulary});
    std::copy_n(logits.data(), copy.size(), copy.data());
    return copy;
  };
  auto others = tokens.copy();
  for (Index t = kChanged; t < kLength; ++t) others(0, t) = (tokens(0, t) + 1) % options.model.vocabulary;
  report.claims.push_back(
      claim_equal({"decoder, three blocks: logits before a changed token that change in any bit", "G14.06"}, 0,
                  changed_bits(logits_of(tokens), logits_of(others))));
}

}  // namespace

void run_masks(Report& report, const Lab& lab) {
  measure_order(report, lab);
  measure_combination(report);
  measure_hidden_keys(report, lab);
  measure_future_tokens(report, lab);
}

}  // namespace heedful
