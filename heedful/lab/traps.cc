#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "heedful/decoder/self_attention.h"
#include "heedful/inspection/attention_map.h"
#include "heedful/kernels/softmax.h"
#include "heedful/lab/altered_forward.h"
#include "heedful/lab/experiments.h"
#include "heedful/lab/gradient_sweep.h"
#include "heedful/lab/removal.h"
#include "heedful/lab/small.h"
#include "heedful/report/claim.h"

namespace heedful {
namespace {

// The figure that the one-line check looks at, with the mistake and without, and the limit between them.
struct Trap {
  std::string name, check;
  double right = 0, wrong = 0;
  bool caught = false;
};

Trap no_scale(const Lab& lab) {
  Random random(612);
  constexpr Index kKeys = 64, kRows = 4 * kKeys;
  const auto q = draw_normal<double, 4>(random, {4, 1, kKeys, 512}),
             k = draw_normal<double, 4>(random, {4, 1, kKeys, 512});
  const auto largest = [&](std::optional<double> scale) {
    AttentionOptions<double> options;
    options.scale = scale;
    const auto weights = attend<double>(lab.context(), {q, k, k}, options).weights;
    double sum = 0;
    for (Index row = 0; row < kRows; ++row)
      sum += *std::max_element(weights.data() + row * kKeys, weights.data() + (row + 1) * kKeys);
    return sum / kRows;
  };
  Trap trap{"1 no division by √D", "mean largest weight, of 64 keys: below 0.5", largest(std::nullopt), largest(1.0)};
  trap.caught = trap.right < 0.5 && trap.wrong >= 0.5;
  return trap;
}

double smallest_row_sum(const Tensor<double, 4>& weights) {
  const Index width = weights.extent(3);
  double smallest = std::numeric_limits<double>::infinity();
  for (Index row = 0; row < weights.size() / width; ++row) {
    smallest =
        std::min(smallest, std::accumulate(weights.data() + row * width, weights.data() + (row + 1) * width, 0.0));
  }
  return smallest;
}

bool is_one(double sum) {
  return std::abs(sum - 1) < 1e-12;
}

Trap mask_after_softmax(const Lab& lab) {
  Random random(3);
  const auto scores = draw_normal<double, 4>(random, {1, 1, 5, 5});
  AttentionOptions<double> options;
  options.scale = 1;
  auto wrong = attend<double>(lab.context(), {scores, identity(5), identity(5)}, options).weights;
  for (Index i = 0; i < 5; ++i) {
    for (Index j = i + 1; j < 5; ++j) wrong(0, 0, i, j) = 0;
  }
  options.causal = true;
  const auto right = attend<double>(lab.context(), {scores, identity(5), identity(5)}, options).weights;
  Trap trap{"2 mask after the softmax", "smallest row sum of the weights: 1", smallest_row_sum(right),
            smallest_row_sum(wrong)};
  trap.caught = is_one(trap.right) && !is_one(trap.wrong);
  return trap;
}

// Head h's values are all h: whatever the weights, every merged row must read 0 … 0 1 … 1 2 … 2 3 … 3.
Trap wrong_merge(const Lab& lab) {
  constexpr Index H = 4, T = 6, D = 8;
  Random random(8);
  const auto q = draw_normal<double, 4>(random, {1, H, T, D});
  Tensor<double, 4> v({1, H, T, D});
  for (Index i = 0; i < v.size(); ++i) {
    const Index head = i / (T * D);
    v.data()[i] = static_cast<double>(head);
  }
  const auto misplaced = [&](bool transposed) {
    Tensor<double, 2> merged({T, H * D});
    AttentionOutputs<double> outputs;
    outputs.out = transposed ? split_heads(merged.view(), 1, H) : View<double, 4>(merged.data(), {1, H, T, D});
    attention_forward<double>(lab.context(), outputs, {q, q, v}, {});
    double count = 0;
    for (Index t = 0; t < T; ++t) {
      for (Index c = 0; c < H * D; ++c) {
        const Index head = c / D;
        count += std::abs(merged(t, c) - static_cast<double>(head)) > 1e-9;
      }
    }
    return count;
  };
  Trap trap{"3 heads merged without the transpose", "values constant by head: misplaced numbers of 192: 0",
            misplaced(true), misplaced(false)};
  trap.caught = trap.right == 0 && trap.wrong > 0;
  return trap;
}

enum class Padding { masked_keys, ignored, masked_queries };

// How many outputs of a short sequence change in any bit when it stands in a batch beside a longer one.
double changed_in_batch(const Lab& lab, Padding padding, Index length) {
  constexpr Index T = 9, D = 8;
  Random random(9);
  const auto q = draw_normal<double, 4>(random, {2, 1, T, D}), k = draw_normal<double, 4>(random, {2, 1, T, D});
  const auto part = [&](const Tensor<double, 4>& x) { return x.view().slice(0, 1, 2).slice(2, 0, length); };
  const auto alone = attend<double>(lab.context(), {part(q), part(k), part(k)}).out;
  Tensor<Index, 1> lengths({2});
  lengths(0) = T;
  lengths(1) = length;
  Tensor<bool, 4> keep({2, 1, T, T});
  for (Index i = 0; i < T; ++i) {
    for (Index j = 0; j < T; ++j) {
      keep(0, 0, i, j) = true;
      keep(1, 0, i, j) = i < length;
    }
  }
  AttentionOptions<double> options;
  options.empty_row = EmptyRow::zero;
  if (padding == Padding::masked_keys) options.key_lengths = lengths;
  if (padding == Padding::masked_queries) options.keep = keep;
  const auto batched = attend<double>(lab.context(), {q, k, k}, options).out;
  double changed = 0;
  for (Index t = 0; t < length; ++t) {
    for (Index d = 0; d < D; ++d)
      changed += std::bit_cast<std::uint64_t>(alone(0, 0, t, d)) != std::bit_cast<std::uint64_t>(batched(1, 0, t, d));
  }
  return changed;
}

Trap padding_in_softmax(const Lab& lab) {
  Trap trap{"4 padding in the softmax", "alone against in a batch: changed outputs of 40: 0",
            changed_in_batch(lab, Padding::masked_keys, 5), changed_in_batch(lab, Padding::ignored, 5)};
  trap.caught = trap.right == 0 && trap.wrong > 0;
  return trap;
}

Trap mask_on_queries(const Lab& lab) {
  Trap trap{"5 padding masked on the query axis", "the same, and with equal lengths it passes",
            changed_in_batch(lab, Padding::masked_keys, 5), changed_in_batch(lab, Padding::masked_queries, 5)};
  trap.caught = trap.right == 0 && trap.wrong > 0 && changed_in_batch(lab, Padding::masked_queries, 9) == 0;
  return trap;
}

Trap softmax_over_queries(const Lab& lab) {
  Random random(10);
  const auto scores = draw_normal<double, 2>(random, {5, 5});
  const auto sum_of_rows = [&](View<const double, 2> input, bool over_queries) {
    Tensor<double, 2> weights({5, 5});
    for (Index i = 0; i < 25; ++i) weights.data()[i] = input(i / 5, i % 5);
    softmax_forward<double>(lab.context(), weights.view(), weights);
    double smallest = 1;
    for (Index i = 0; i < 5; ++i) {
      double sum = 0;
      for (Index j = 0; j < 5; ++j) sum += over_queries ? weights(j, i) : weights(i, j);
      smallest = std::min(smallest, sum);
    }
    return smallest;
  };
  Trap trap{"6 softmax over the queries", "smallest row sum of the weights: 1", sum_of_rows(scores, false),
            sum_of_rows(scores.view().transpose(), true)};
  trap.caught = is_one(trap.right) && !is_one(trap.wrong);
  return trap;
}

// Permutes the tokens of a decoder that sees all of them: without position the logits are permuted and nothing else.
Trap no_position(const Lab& lab) {
  constexpr Index T = 8, V = 21;
  Random random(11);
  const std::vector<Index> order = random.permutation(T);
  const auto moved = [&](Position position) {
    DecoderConfig config{.vocabulary = V, .context = T};
    config.position = position;
    Random seeded(0);
    const Decoder<double> decoder{config, initial_parameters<double>(config, seeded)};
    Tensor<Index, 2> tokens({1, T}), permuted({1, T});
    for (Index t = 0; t < T; ++t) tokens(0, t) = 2 * t;
    for (Index t = 0; t < T; ++t) permuted(0, t) = tokens(0, order[static_cast<std::size_t>(t)]);
    const auto see_all = [](AttentionOptions<double>& options, Index) { options.causal = false; };
    Activations<double> a, b;
    const auto logits = altered_forward<double>(lab.context(), a, decoder, tokens, see_all);
    const auto others = altered_forward<double>(lab.context(), b, decoder, permuted, see_all);
    double largest = 0;
    for (Index t = 0; t < T; ++t) {
      for (Index v = 0; v < V; ++v) {
        largest = std::max(largest, std::abs(others(0, t, v) - logits(0, order[static_cast<std::size_t>(t)], v)));
      }
    }
    return largest;
  };
  Trap trap{"7 no position", "permuted input against permuted output: deviation above 0.01", moved(Position::learned),
            moved(Position::none)};
  trap.caught = trap.right > 0.01 && trap.wrong < 1e-12;
  return trap;
}

Trap large_epsilon(const Lab&) {
  const GradientSubject subject = article_subject(NormPlacement::pre);
  Trap trap{"8 ε = 1e-4 in the gradient check", "worst relative deviation: below 1e-3",
            sweep_gradient(subject, 1e-6).worst, sweep_gradient(subject, 1e-4).worst};
  trap.caught = trap.right < 1e-3 && trap.wrong >= 1e-3;
  return trap;
}

// The heaviest key among those whose removal the answer does not notice: read as an explanation, a mistake.
Trap weight_as_explanation(const Lab& lab) {
  const Decoder<double>& decoder = lab.copy_model();
  const auto maps = attention_maps<double>(lab.context(), decoder, map_sequence());
  const auto effects = removal_effects(lab.context(), decoder);
  Trap trap{"9 a weight shown as the reason", "effect of removing that key, nats (left) beside its weight (right)"};
  for (Index l = 0; l < decoder.config.layers; ++l) {
    for (Index h = 0; h < decoder.config.heads; ++h) {
      for (Index i = kAnswerBegin; i < effects.extent(2); ++i) {
        for (Index j = 0; j <= i; ++j) {
          const double weight = maps[static_cast<std::size_t>(l)](0, h, i, j);
          if (std::abs(effects(l, h, i, j)) >= 0.01 || weight <= trap.wrong) continue;
          trap.wrong = weight;
          trap.right = effects(l, h, i, j);
        }
      }
    }
  }
  trap.caught = trap.wrong > 0.3;
  return trap;
}

}  // namespace

void run_traps(Report& report, const Lab& lab) {
  Table table{"", {"trap", "check", "right", "wrong", "told apart"}, {}};
  for (const auto& run : {no_scale, mask_after_softmax, wrong_merge, padding_in_softmax, mask_on_queries,
                          softmax_over_queries, no_position, large_epsilon, weight_as_explanation}) {
    const Trap trap = run(lab);
    table.rows.push_back({trap.name, trap.check, fmt::format("{:.3g}", trap.right), fmt::format("{:.3g}", trap.wrong),
                          trap.caught ? "yes" : "NO"});
    report.claims.push_back(claim_that({fmt::format("trap {}: {}", trap.name, trap.check), "article, §traps"},
                                       trap.caught, "the check tells right from wrong",
                                       fmt::format("right {:.3g}, wrong {:.3g}", trap.right, trap.wrong)));
  }
  report.tables.push_back(std::move(table));
  report.notes.emplace_back(
      "None of the nine raises an error anywhere. `heedful diagnose` looks for these and more in other people's "
      "code.");
}

}  // namespace heedful
