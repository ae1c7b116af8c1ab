#include "heedful/training/options.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "heedful/core/error.h"

namespace heedful {
namespace {

TrainOptions read(const char* text) {
  return nlohmann::json::parse(text).get<TrainOptions>();
}

TEST(TrainOptions, SurviveJson) {
  TrainOptions options;
  options.task = {TaskKind::reverse, 4, 9};
  options.model.position = Position::alibi;
  options.adam.learning_rate = 0.1;
  options.seed = ~std::uint64_t{0};
  options.precision = Precision::f64;
  fit_model_to_task(options);
  const TrainOptions back = nlohmann::json(options).get<TrainOptions>();
  EXPECT_EQ(back.task, options.task);
  EXPECT_EQ(back.model, options.model);
  EXPECT_EQ(back.adam.learning_rate, 0.1);
  EXPECT_EQ(back.seed, options.seed);
  EXPECT_EQ(back.precision, Precision::f64);
}

TEST(TrainOptions, JsonIsStrict) {
  EXPECT_EQ(read(R"({"training": {"steps": 7}})").steps, 7);
  for (const char* text :
       {R"({"training": {"seed": -1}})", R"({"training": {"seed": 1.5}})", R"({"training": {"step": 1}})",
        R"({"task": {"kind": "sing"}})", R"({"task": {"length": true}})", R"({"modle": {}})", "[]"}) {
    EXPECT_THROW(read(text), Error) << text;
  }
}

}  // namespace
}  // namespace heedful
