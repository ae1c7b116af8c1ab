#include "heedful/decoder/config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "heedful/core/error.h"

namespace heedful {
namespace {

DecoderConfig article() {
  DecoderConfig config;
  config.vocabulary = 21;
  config.context = 13;
  return config;
}

void expect_refused(const DecoderConfig& config, const char* part) {
  try {
    validate(config);
    FAIL() << "accepted; expected an error about " << part;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(Config, TheArticlesDecoderIsTheDefault) {
  validate(article());
}

TEST(Config, RefusesWhatMakesNoDecoder) {
  const auto with = [](auto change) {
    DecoderConfig config = article();
    change(config);
    return config;
  };
  expect_refused(with([](auto& c) { c.vocabulary = 0; }), "vocabulary");
  expect_refused(with([](auto& c) { c.context = 0; }), "context");
  expect_refused(with([](auto& c) { c.width = 33; }), "heads: expected a divisor of the width");
  expect_refused(with([](auto& c) { c.kv_heads = 3; }), "kv_heads");
  expect_refused(with([](auto& c) { c.heads = -4; }), "heads");
  expect_refused(with([](auto& c) { c.layers = 5000; }), "layers");
  expect_refused(with([](auto& c) { c.layers = 0; }), "layers");
  expect_refused(with([](auto& c) { c.norm_epsilon = 0; }), "norm_epsilon");
  expect_refused(with([](auto& c) { c.norm_epsilon = NAN; }), "norm_epsilon");
  expect_refused(with([](auto& c) { c.softcap = -1; }), "softcap");
  expect_refused(with([](auto& c) { c.window = -1; }), "window");
  expect_refused(with([](auto& c) {
                   c.width = 12;
                   c.position = Position::rotary;
                 }),
                 "even head width");
}

TEST(Config, SurvivesJson) {
  DecoderConfig config = article();
  config.norm = Norm::rms;
  config.norm_placement = NormPlacement::post;
  config.position = Position::rotary;
  config.rotary_layout = RotaryLayout::interleaved;
  config.activation = FeedForward::swiglu;
  config.kv_heads = 2;
  config.scale = config.bias = config.output_bias = false;
  config.tied = true;
  config.softcap = 30;
  config.window = 5;
  config.norm_epsilon = 1e-6;
  EXPECT_EQ(nlohmann::json(config).get<DecoderConfig>(), config);
}

TEST(Config, JsonIsStrict) {
  const auto read = [](const char* text) { return nlohmann::json::parse(text).get<DecoderConfig>(); };
  EXPECT_EQ(read(R"({"heads": 2})").heads, 2);
  EXPECT_THROW(read(R"({"head": 2})"), Error);
  EXPECT_THROW(read(R"({"heads": "2"})"), Error);
  EXPECT_THROW(read(R"({"heads": 2.5})"), Error);
  EXPECT_THROW(read(R"({"heads": 18446744073709551615})"), Error);
  EXPECT_THROW(read(R"({"tied": 1})"), Error);
  EXPECT_THROW(read(R"({"norm": "batch"})"), Error);
  EXPECT_THROW(read("[1]"), Error);
}

}  // namespace
}  // namespace heedful
