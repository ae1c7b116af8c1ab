#include <map>

#include "heedful/decoder/cost.h"
#include "heedful/decoder/parameters.h"
#include "heedful/lab/experiments.h"
#include "heedful/report/claim.h"

namespace heedful {
namespace {

Index block_inventory(const DecoderConfig& config) {
  Index sum = 0;
  for (const auto& entry : parameter_inventory(config)) {
    if (entry.name.starts_with("block.0.")) sum += entry.size();
  }
  return sum;
}

void measure_article_table(Report& report) {
  Table table{"one block, F = 4C", {"C", "F", "12C² + 13C", "inventory"}, {}};
  const std::map<Index, Index> printed{{64, 49984}, {256, 789760}, {512, 3152384}};
  for (const auto& [C, count] : printed) {
    const DecoderConfig config{.vocabulary = 32, .context = 16, .width = C, .layers = 1, .feed_forward = 4 * C};
    const Index inventory = block_inventory(config);
    table.rows.push_back({fmt::format("{}", C), fmt::format("{}", 4 * C), fmt::format("{}", 12 * C * C + 13 * C),
                          fmt::format("{}", inventory)});
    report.claims.push_back(claim_equal(
        {fmt::format("parameters of one block at C = {}", C), "article, §complete block"}, count, inventory));
  }
  report.tables.push_back(std::move(table));

  const DecoderConfig article{.vocabulary = 21, .context = 13};
  report.claims.push_back(
      claim_equal({"parameters of the article's decoder", "article, §experiment"}, 27253, parameter_count(article)));
}

// The article's breakdown for C = 512, from the inventory.
void measure_breakdown(Report& report) {
  constexpr Index C = 512;
  const DecoderConfig config{.vocabulary = 32, .context = 16, .width = C, .layers = 1, .feed_forward = 4 * C};
  const std::pair<const char*, Index> printed[] = {{"attention weights", 1048576},
                                                   {"attention biases", 2048},
                                                   {"feed-forward up weight", 1048576},
                                                   {"feed-forward up bias", 2048},
                                                   {"feed-forward down weight", 1048576},
                                                   {"feed-forward down bias", 512},
                                                   {"norms", 2048}};
  std::map<std::string, Index> measured;
  for (const auto& entry : parameter_inventory(config)) {
    if (!entry.name.starts_with("block.0.")) continue;
    const bool weight = entry.name.ends_with(".weight");
    if (entry.name.find("norm") != std::string::npos) {
      measured["norms"] += entry.size();
    } else if (entry.name.find(".attention.") != std::string::npos) {
      measured[weight ? "attention weights" : "attention biases"] += entry.size();
    } else {
      const bool up = entry.name.find(".up.") != std::string::npos;
      measured[fmt::format("feed-forward {} {}", up ? "up" : "down", weight ? "weight" : "bias")] += entry.size();
    }
  }
  Table table{"one block at C = 512, entry by entry", {"entry", "article", "inventory"}, {}};
  Index same = 0;
  for (const auto& [name, count] : printed) {
    same += measured[name] == count;
    table.rows.push_back({name, fmt::format("{}", count), fmt::format("{}", measured[name])});
  }
  report.tables.push_back(std::move(table));
  report.claims.push_back(
      claim_equal({"entries of the breakdown that agree, of 7", "article, §complete block"}, 7, same));
  const auto block = static_cast<double>(block_inventory(config));
  const Index small = measured["attention biases"] + measured["feed-forward up bias"] +
                      measured["feed-forward down bias"] + measured["norms"];
  const Index wide = measured["feed-forward up weight"] + measured["feed-forward down weight"];
  report.claims.push_back(claim_printed({"biases and norms, % of the block", "article, §complete block"}, "0.21",
                                        100 * static_cast<double>(small) / block));
  report.claims.push_back(claim_printed({"two thirds of the block are the feed-forward matrices", "article, figure"},
                                        "0.67", static_cast<double>(wide) / block));
}

// Every combination of the choices that change the count.
void measure_any_config(Report& report) {
  Index configs = 0, different = 0;
  for (const Norm norm : {Norm::layer, Norm::rms}) {
    for (const FeedForward activation : {FeedForward::relu, FeedForward::gelu_tanh, FeedForward::swiglu}) {
      for (const Position position : {Position::learned, Position::sinusoidal, Position::rotary, Position::none}) {
        for (const Index kv_heads : {1, 2, 8}) {
          for (int flags = 0; flags < 8; ++flags) {
            DecoderConfig config{.vocabulary = 37,
                                 .context = 19,
                                 .width = 48,
                                 .heads = 8,
                                 .kv_heads = kv_heads,
                                 .layers = 3,
                                 .feed_forward = 100,
                                 .norm = norm,
                                 .position = position,
                                 .activation = activation};
            config.bias = (flags & 1) != 0;
            config.output_bias = (flags & 2) != 0;
            config.tied = (flags & 4) != 0;
            const DecoderCost cost = decoder_cost(config, 1, 4);
            ++configs;
            different +=
                cost.total_parameters != parameter_count(config) || cost.block_parameters != block_inventory(config);
          }
        }
      }
    }
  }
  report.claims.push_back(claim_equal({fmt::format("of {} configs (norm, activation, position, groups, biases, "
                                                   "tied), those whose closed form and inventory differ",
                                                   configs),
                                       ""},
                                      0, different));
}

}  // namespace

void run_parameters(Report& report, const Lab&) {
  measure_article_table(report);
  measure_breakdown(report);
  measure_any_config(report);
}

}  // namespace heedful
