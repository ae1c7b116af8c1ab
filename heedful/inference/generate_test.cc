#include "heedful/inference/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <vector>

#include "heedful/core/error.h"

namespace heedful {
namespace {

template <class T>
Decoder<T> made(Position position) {
  DecoderConfig config;
  config.vocabulary = 9;
  config.context = 20;
  config.width = 16;
  config.heads = 4;
  config.kv_heads = 2;
  config.feed_forward = 24;
  config.position = position;
  Random random(2);
  return {config, initial_parameters<T>(config, random)};
}

GenerateOptions greedy(Index tokens) {
  return {.tokens = tokens, .cache = true, .sampler = {}};
}

Tensor<Index, 2> prompts() {
  Tensor<Index, 2> tokens({3, 5});
  Random random(3);
  for (Index& token : tokens) token = random.integer(0, 9);
  return tokens;
}

template <class T>
class Generate : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Generate, Types);

TYPED_TEST(Generate, TheCacheChangesNoBit) {
  using T = TypeParam;
  for (Position position :
       {Position::learned, Position::sinusoidal, Position::rotary, Position::alibi, Position::none}) {
    const Decoder<T> decoder = made<T>(position);
    for (double temperature : {0.0, 1.3}) {
      GenerateOptions options{.tokens = 12, .cache = true, .sampler = {.temperature = temperature, .seed = 4}};
      const Generation<T> with = generate<T>(Context(1), decoder, prompts(), options);
      options.cache = false;
      const Generation<T> without = generate<T>(Context(1), decoder, prompts(), options);
      EXPECT_TRUE(std::ranges::equal(with.tokens, without.tokens));
      EXPECT_EQ(0, std::memcmp(with.logits.data(), without.logits.data(),
                               sizeof(T) * static_cast<std::size_t>(with.logits.size())));
    }
  }
}

TYPED_TEST(Generate, GreedyTakesTheLargestLogit) {
  using T = TypeParam;
  const Generation<T> made_tokens = generate<T>(Context(1), made<T>(Position::learned), prompts(), greedy(4));
  for (Index b = 0; b < 3; ++b) {
    for (Index i = 0; i < 4; ++i) {
      for (Index v = 0; v < 9; ++v) {
        EXPECT_LE(made_tokens.logits(b, i, v), made_tokens.logits(b, i, made_tokens.tokens(b, i)));
      }
    }
  }
}

TEST(GenerateBorders, RefusesWhatDoesNotFit) {
  const Decoder<float> decoder = made<float>(Position::learned);
  EXPECT_NO_THROW(generate<float>(Context(1), decoder, prompts(), greedy(16)));  // reads 5 + 15 positions
  EXPECT_THROW(generate<float>(Context(1), decoder, prompts(), greedy(17)), Error);
  EXPECT_THROW(generate<float>(Context(1), decoder, prompts(), greedy(-1)), Error);
  EXPECT_THROW(generate<float>(Context(1), decoder, Tensor<Index, 2>({1, 0}), greedy(1)), Error);
  EXPECT_EQ(generate<float>(Context(1), decoder, prompts(), greedy(0)).tokens.size(), 0);
}

// Past the context each token comes from the last 20 alone, whether the prompt was longer or what followed it; up to
// there nothing differs from not sliding.
TEST(GenerateBorders, SlidesOverTheContextWhereItMay) {
  const Context context(1);
  const Decoder<float> decoder = made<float>(Position::learned);
  for (Index prompt : {5, 19, 20, 21, 33}) {
    Tensor<Index, 2> sequence({1, prompt + 24});
    Random random(6);
    for (Index t = 0; t < prompt; ++t) sequence(0, t) = random.integer(0, 9);
    Tensor<Index, 2> start({1, prompt});
    std::copy_n(sequence.data(), prompt, start.data());
    GenerateOptions options = greedy(24);
    options.slide = true;
    const Generation<float> with = generate<float>(context, decoder, start, options);
    options.cache = false;
    const Generation<float> without = generate<float>(context, decoder, start, options);
    for (Index i = 0; i < 24; ++i) {
      const Index end = prompt + i, begin = std::max(end - 20, Index{0});
      Tensor<Index, 2> window({1, end - begin});
      std::copy_n(sequence.data() + begin, end - begin, window.data());
      const Generation<float> one = generate<float>(context, decoder, window, greedy(1));
      for (Index v = 0; v < 9; ++v) {
        ASSERT_EQ(with.logits(0, i, v), one.logits(0, 0, v)) << prompt << " " << i;
        ASSERT_EQ(without.logits(0, i, v), one.logits(0, 0, v)) << prompt << " " << i;
      }
      sequence(0, end) = with.tokens(0, i);
    }
  }
}

std::map<Index, int> counts(const std::vector<double>& logits, const SamplerOptions& options, int draws) {
  Random random(options.seed);
  std::map<Index, int> result;
  const View<const double, 1> row(logits.data(), {static_cast<Index>(logits.size())});
  for (int i = 0; i < draws; ++i) ++result[sample<double>(row, options, random)];
  return result;
}

// A count of n draws of probability p stays within 5 standard deviations √(np(1−p)) but once in a million.
void expect_share(const std::map<Index, int>& counted, Index token, double p, int draws) {
  const double n = draws;
  EXPECT_NEAR(counted.contains(token) ? counted.at(token) : 0, n * p, 5 * std::sqrt(n * p * (1 - p)) + 1e-9) << token;
}

TEST(Sampler, DrawsTheSoftmaxAtItsTemperature) {
  const std::vector<double> logits = {std::log(0.5), std::log(0.3), std::log(0.2)};
  auto counted = counts(logits, {.temperature = 1}, 20000);
  for (Index i = 0; i < 3; ++i) expect_share(counted, i, std::exp(logits[static_cast<std::size_t>(i)]), 20000);
  counted = counts(logits, {.temperature = 0.5}, 20000);  // p² / Σp²
  expect_share(counted, 0, 0.25 / 0.38, 20000);
  expect_share(counted, 1, 0.09 / 0.38, 20000);
}

TEST(Sampler, KeepsTheTopKAndTheTopP) {
  const std::vector<double> logits = {std::log(0.1), std::log(0.5), std::log(0.3), std::log(0.1)};
  auto counted = counts(logits, {.temperature = 1, .top_k = 2}, 20000);
  expect_share(counted, 1, 0.5 / 0.8, 20000);
  expect_share(counted, 2, 0.3 / 0.8, 20000);
  counted = counts(logits, {.temperature = 1, .top_p = 0.5}, 1000);
  expect_share(counted, 1, 1, 1000);
  counted = counts(logits, {.temperature = 1, .top_p = 0.85}, 20000);  // 0.5 + 0.3 + the first 0.1
  expect_share(counted, 0, 0.1 / 0.9, 20000);
  expect_share(counted, 3, 0, 20000);
}

TEST(Sampler, TemperatureZeroTakesTheFirstOfEquals) {
  EXPECT_EQ(counts({1, 3, 3, 2}, {}, 10), (std::map<Index, int>{{1, 10}}));
}

TEST(Sampler, RefusesNonsense) {
  Random random(0);
  const double logits[2] = {0, std::nan("")};
  EXPECT_THROW(sample<double>(View<const double, 1>(logits, {2}), {}, random), Error);
  EXPECT_THROW(validate(SamplerOptions{.temperature = -1}), Error);
  EXPECT_THROW(validate(SamplerOptions{.temperature = std::nan("")}), Error);
  EXPECT_THROW(validate(SamplerOptions{.top_k = -1}), Error);
  EXPECT_THROW(validate(SamplerOptions{.top_p = 0}), Error);
  EXPECT_THROW(validate(SamplerOptions{.top_p = 1.5}), Error);
}

}  // namespace
}  // namespace heedful
