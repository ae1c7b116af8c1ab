#include "heedful/decoder/cost.h"

#include <algorithm>
#include <initializer_list>

#include "heedful/core/error.h"

namespace heedful {
namespace {

Index product(std::initializer_list<Index> factors) {
  Index result = 1;
  for (Index factor : factors) {
    require(!__builtin_mul_overflow(result, factor, &result), "cost", "the figure does not fit 63 bits");
  }
  return result;
}

Index add(Index a, Index b) {
  Index result = 0;
  require(!__builtin_add_overflow(a, b, &result), "cost", "the figure does not fit 63 bits");
  return result;
}

Index sum(const std::vector<CostEntry>& entries) {
  Index total = 0;
  for (const auto& entry : entries) total = add(total, entry.parameters);
  return total;
}

std::vector<CostEntry> block_entries(const DecoderConfig& c) {
  const Index kv = c.key_width(), inner = c.gated() ? 2 : 1;
  const Index norm = c.norm == Norm::layer && c.bias ? 2 : 1;
  std::vector<CostEntry> entries = {
      {"query, key, value, output weights", 2 * c.width * c.width + 2 * c.width * kv},
      {c.gated() ? "gate and up weights" : "up weight", inner * c.width * c.feed_forward},
      {"down weight", c.feed_forward * c.width},
      {norm == 2 ? "two norms (gain and bias)" : "two norms (gain)", 2 * norm * c.width},
  };
  if (c.bias) {
    entries.push_back({"biases of the four projections", 2 * c.width + 2 * kv});
    entries.push_back({"biases of the feed-forward", inner * c.feed_forward + c.width});
  }
  return entries;
}

std::vector<CostEntry> outside_entries(const DecoderConfig& c) {
  std::vector<CostEntry> entries = {{"token embedding", c.vocabulary * c.width}};
  if (c.position == Position::learned) entries.push_back({"position embedding", c.context * c.width});
  entries.push_back({"final norm", (c.norm == Norm::layer && c.bias ? 2 : 1) * c.width});
  if (!c.tied) entries.push_back({"unembedding weight", c.width * c.vocabulary});
  if (c.output_bias) entries.push_back({"unembedding bias", c.vocabulary});
  return entries;
}

// Numbers a training step keeps per position, as decoder/activations.h lays them out.
Index activations_per_position(const DecoderConfig& c) {
  const Index norm = 2 * c.width + 1;                                     // normalized row, output, inverse deviation
  const Index attention = 2 * c.width + 2 * c.key_width() + 2 * c.heads;  // q, context, k, v, row statistics
  const Index feed_forward = (c.gated() ? 3 : 2) * c.feed_forward;
  const Index block = 2 * norm + attention + feed_forward + 2 * c.width;  // + the two residual sums
  return c.layers * block + norm + c.width + c.vocabulary;
}

}  // namespace

DecoderCost decoder_cost(const DecoderConfig& config, Index batch, Index element_bytes) {
  DecoderConfig whole = config;
  if (config.vocabulary == 0) whole.vocabulary = 1;
  validate(whole);
  require(batch >= 1, "cost", "batch: expected at least 1, got {}", batch);
  require(element_bytes >= 1, "cost", "element bytes: expected at least 1, got {}", element_bytes);

  DecoderCost cost;
  cost.block_entries = block_entries(config);
  if (config.vocabulary > 0) cost.outside_entries = outside_entries(config);
  cost.block_parameters = sum(cost.block_entries);
  cost.total_parameters = add(product({config.layers, cost.block_parameters}), sum(cost.outside_entries));
  cost.parameter_bytes = product({cost.total_parameters, element_bytes});
  cost.kv_cache_bytes = product({2, config.layers, config.key_width(), config.context, batch, element_bytes});
  cost.score_bytes = product({batch, config.heads, config.context, config.context, element_bytes});
  cost.activation_bytes = product({batch, config.context, activations_per_position(config), element_bytes});

  const Index matrices =
      add(product({config.layers, cost.block_entries[0].parameters + cost.block_entries[1].parameters +
                                      cost.block_entries[2].parameters}),
          config.width * config.vocabulary);
  const Index visible = config.window == 0 ? config.context : std::min(config.window, config.context);
  cost.flops_per_token =
      add(product({2, matrices}), product({2, config.layers, config.heads, 2 * config.head_width(), visible}));
  return cost;
}

}  // namespace heedful
