#include <algorithm>
#include <array>
#include <chrono>
#include <limits>

#include "heedful/decoder/cost.h"
#include "heedful/inference/generate.h"
#include "heedful/lab/experiments.h"
#include "heedful/lab/small.h"
#include "heedful/report/claim.h"

namespace heedful {
namespace {

constexpr Index kPrompt = 32, kTokens = 128, kFewTokens = 8, kLayers = 4, kWidth = 256, kHeads = 8;

// The article's toy has attention alone: the narrowest feed-forward that a config allows comes closest.
Decoder<float> toy(Index kv_heads, Index length) {
  DecoderConfig config{.vocabulary = 64,
                       .context = length,
                       .width = kWidth,
                       .heads = kHeads,
                       .kv_heads = kv_heads,
                       .layers = kLayers,
                       .feed_forward = 1};
  Random random(5);
  return {config, initial_parameters<float>(config, random)};
}

struct Timed {
  Generation<float> generation;
  double seconds = 0;
};

Timed timed_generation(const Decoder<float>& decoder, Index tokens, bool cache) {
  Random random(6);
  Tensor<Index, 2> prompt({1, kPrompt});
  for (Index& token : prompt) token = random.integer(0, decoder.config.vocabulary);
  GenerateOptions options;
  options.tokens = tokens;
  options.cache = cache;
  const auto start = std::chrono::steady_clock::now();
  auto generation = generate<float>(Context(1), decoder, prompt, options);
  return {std::move(generation), std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
}

// Of generating without the cache and with it, for each number of tokens: the smallest of several times each, as load
// only lengthens them, taken in turns, so that a burst of load falls on all alike.
template <std::size_t Lengths>
std::array<double, Lengths> time_ratios(const std::array<Index, Lengths>& tokens) {
  constexpr int kTrials = 4;
  std::array<double, Lengths> without, with, ratios;
  without.fill(std::numeric_limits<double>::infinity());
  with = without;
  for (int trial = 0; trial < kTrials; ++trial) {
    for (std::size_t i = 0; i < Lengths; ++i) {
      const auto decoder = toy(kHeads, kPrompt + tokens[i]);
      without[i] = std::min(without[i], timed_generation(decoder, tokens[i], false).seconds);
      with[i] = std::min(with[i], timed_generation(decoder, tokens[i], true).seconds);
    }
  }
  for (std::size_t i = 0; i < Lengths; ++i) ratios[i] = without[i] / with[i];
  return ratios;
}

void measure_generation(Report& report, const Lab& lab) {
  const std::string source = "article, §key-value cache";
  Table table{fmt::format("4 layers, width 256, 8 heads, prompt of 32, {} tokens generated, one thread", kTokens),
              {"key-value heads", "without (s)", "with (s)", "ratio", "changed logits", "cache, formula (bytes)",
               "allocated (bytes)"},
              {}};
  Index changed = 0, mismatched_bytes = 0;
  for (const Index kv_heads : {kHeads, Index{2}, Index{1}}) {
    lab.progress(0.3 * static_cast<double>(kHeads - kv_heads) / kHeads,
                 fmt::format("generating with {} key-value heads", kv_heads));
    const auto decoder = toy(kv_heads, kPrompt + kTokens);
    const Timed without = timed_generation(decoder, kTokens, false), with = timed_generation(decoder, kTokens, true);
    const Index here = changed_bits(without.generation.logits, with.generation.logits);
    changed += here;
    const Index formula = decoder_cost(decoder.config, 1, sizeof(float)).kv_cache_bytes;
    const KvCache<float> cache({kLayers, 1, kv_heads, decoder.config.context, kWidth / kHeads, kWidth / kHeads});
    const Index allocated = cache.elements() * Index{sizeof(float)};
    mismatched_bytes += formula != allocated;
    table.rows.push_back({fmt::format("{}", kv_heads), fmt::format("{:.3f}", without.seconds),
                          fmt::format("{:.3f}", with.seconds), fmt::format("{:.0f}", without.seconds / with.seconds),
                          fmt::format("{}", here), fmt::format("{}", formula), fmt::format("{}", allocated)});
  }
  lab.progress(0.5, "timing the generation of few tokens and of many");
  const auto [short_ratio, ratio] = time_ratios(std::array{kFewTokens, kTokens});
  report.tables.push_back(std::move(table));
  report.claims.push_back(
      claim_equal({"logits that differ in any bit with and without the cache (6.9e-15 there)", source}, 0, changed));
  report.claims.push_back(
      claim_equal({"of 8, 2 and 1 key-value heads, those whose cache has other bytes than the formula says", source},
                  0, mismatched_bytes));
  report.claims.push_back(claim_at_least(
      {fmt::format("generating {} tokens without the cache takes longer, as a factor (30 to 65 there)", kTokens),
       source, false},
      3, ratio));
  report.claims.push_back(claim_that(
      {fmt::format("that factor grows with the generated length: {} tokens against {}", kFewTokens, kTokens), source,
       false},
      ratio > short_ratio, "more for the longer", fmt::format("{:.1f} against {:.1f}", short_ratio, ratio)));
}

void measure_formula(Report& report) {
  const auto bytes = [](Index layers, Index kv_heads, Index D, Index T, Index element) {
    DecoderConfig config{
        .context = T, .width = 32 * D, .heads = 32, .kv_heads = kv_heads, .layers = layers, .feed_forward = 1};
    return static_cast<double>(decoder_cost(config, 1, element).kv_cache_bytes);
  };
  const std::string source = "article, §key-value cache";
  report.claims.push_back(claim_printed({"4 layers, 8 heads of 32, 160 positions, 64 bits: MiB", source}, "2.50",
                                        bytes(4, 8, 32, 160, 8) / (1 << 20)));
  report.claims.push_back(
      claim_printed({"32 layers, 32 key-value heads of 128, 4096 positions, 16 bits: GiB", source}, "2.000",
                    bytes(32, 32, 128, 4096, 2) / (1 << 30)));
  report.claims.push_back(claim_printed({"… with one key-value head (printed as 0.062, of 0.0625)", source}, "0.0625",
                                        bytes(32, 1, 128, 4096, 2) / (1 << 30)));
}

}  // namespace

void run_cache(Report& report, const Lab& lab) {
  measure_generation(report, lab);
  measure_formula(report);
  report.notes.emplace_back(
      "The ratio is smaller than the article's where the uncached side is fast: a whole prefix goes through the "
      "tiled "
      "product, one row does not.");
}

}  // namespace heedful
