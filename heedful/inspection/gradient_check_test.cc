#include "heedful/inspection/gradient_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "heedful/core/error.h"
#include "heedful/inspection/scalar_decoder.h"
#include "heedful/training/trainer.h"

namespace heedful {
namespace {

struct Case {
  const char* name;
  DecoderConfig config;
};

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto add = [&](const char* name, auto change) {
    DecoderConfig config;
    config.vocabulary = 7;
    config.context = 8;
    config.width = 8;
    config.heads = 4;
    config.kv_heads = 2;
    config.feed_forward = 12;
    change(config);
    list.push_back({name, config});
  };
  add("pre", [](auto&) {});
  add("post", [](auto& c) { c.norm_placement = NormPlacement::post; });
  add("no scale, no position", [](auto& c) {
    c.scale = false;
    c.position = Position::none;
  });
  add("gpt2", [](auto& c) {
    c.activation = FeedForward::gelu_tanh;
    c.tied = true;
    c.output_bias = false;
  });
  add("llama", [](auto& c) {
    c.norm = Norm::rms;
    c.position = Position::rotary;
    c.activation = FeedForward::swiglu;
    c.bias = c.output_bias = false;
  });
  add("post rms, interleaved, multi-query", [](auto& c) {
    c.norm = Norm::rms;
    c.norm_placement = NormPlacement::post;
    c.position = Position::rotary;
    c.rotary_layout = RotaryLayout::interleaved;
    c.activation = FeedForward::gelu;
    c.kv_heads = 1;
  });
  add("alibi, window, softcap", [](auto& c) {
    c.position = Position::alibi;
    c.window = 3;
    c.softcap = 2;
    c.activation = FeedForward::gelu;
  });
  add("sinusoidal, tied with bias", [](auto& c) {
    c.position = Position::sinusoidal;
    c.tied = true;
  });
  return list;
}

struct Subject {
  Decoder<double> decoder;
  Batch<double> batch;
};

Subject drawn(const DecoderConfig& config) {
  Random random(8);
  Subject subject{{config, initial_parameters<double>(config, random)},
                  {Tensor<Index, 2>({2, 7}), Tensor<Index, 2>({2, 7}), Tensor<double, 2>({2, 7})}};
  for (Index& token : subject.batch.tokens) token = random.integer(0, config.vocabulary);
  for (Index& target : subject.batch.targets) target = random.integer(0, config.vocabulary);
  for (double& weight : subject.batch.loss_weights) weight = static_cast<double>(random.integer(0, 3));
  for (double& value : subject.decoder.parameters) value += 0.1 * random.normal();  // biases and gains too
  return subject;
}

TEST(GradientCheck, PassesOnEveryKindOfDecoder) {
  for (const auto& [name, config] : cases()) {
    const Subject subject = drawn(config);
    const GradientCheck check = check_gradients(Context(1), subject.decoder, subject.batch, {});
    EXPECT_TRUE(check.passed) << name << ": " << check.max_relative_deviation << " at " << check.worst << ", forward "
                              << check.forward_mode_deviation << " at " << check.forward_mode_worst << ", small "
                              << check.small_failures;
    EXPECT_GT(check.checked, subject.decoder.parameters.size() / 2) << name;
    EXPECT_EQ(check.checked + check.skipped + check.kinks, subject.decoder.parameters.size()) << name;
  }
}

TEST(GradientCheck, TheKernelsAgreeWithTheScalarFormula) {
  for (const auto& [name, config] : cases()) {
    const Subject s = drawn(config);
    Activations<double> activations;
    const double loss = decoder_loss<double>(Context(1), activations, s.decoder, s.batch);
    const double scalar = scalar_loss<double>(config, s.decoder.parameters.data(),
                                              {s.batch.tokens, s.batch.targets, s.batch.loss_weights});
    // Some 10 sums of up to 12 terms in sequence on each side: 240·u = 3e-14 of a loss of order 1.
    EXPECT_NEAR(loss, scalar, 1e-13 * std::max(1.0, scalar)) << name;
  }
}

// One wrong number among all of them must be found and named, whichever it is.
TEST(GradientCheck, NamesAWrongGradient) {
  const Subject subject = drawn(cases()[0].config);
  Tensor<double, 1> gradients(subject.decoder.parameters.extents());
  Activations<double> activations;
  decoder_loss_and_gradients<double>(Context(1), gradients, activations, subject.decoder, subject.batch);
  for (const auto& entry : parameter_inventory(subject.decoder.config)) {
    if (entry.name.ends_with("key.bias")) continue;  // exactly 0 by theory: the softmax does not see it
    double& wrong = gradients(entry.offset + entry.size() / 2);
    const double right = wrong;
    wrong = right * 1.01 + 1e-5;
    const GradientCheck check = check_given_gradients(Context(1), gradients, subject.decoder, subject.batch, {});
    EXPECT_FALSE(check.passed) << entry.name;
    if (std::abs(right) > 1e-4) {
      EXPECT_TRUE(check.worst.starts_with(entry.name)) << entry.name << " " << check.worst;
    }
    wrong = right;
  }
}

TEST(GradientCheck, ForwardModeAloneNamesTheTensor) {
  const Subject subject = drawn(cases()[4].config);
  Tensor<double, 1> gradients(subject.decoder.parameters.extents());
  Activations<double> activations;
  decoder_loss_and_gradients<double>(Context(1), gradients, activations, subject.decoder, subject.batch);
  gradients(subject.decoder.parameters.size() - 1) += 1e-8;  // far too small for any finite difference
  const GradientCheck check =
      check_given_gradients(Context(1), gradients, subject.decoder, subject.batch, {.coordinates = 1});
  EXPECT_FALSE(check.passed);
  EXPECT_EQ(check.forward_mode_worst, "unembedding.weight");
}

TEST(GradientCheck, ALargeStepCrossesKinksAndSaysSo) {
  const Subject subject = drawn(cases()[0].config);
  const GradientCheck fine = check_gradients(Context(1), subject.decoder, subject.batch, {.epsilon = 1e-6});
  const GradientCheck coarse = check_gradients(Context(1), subject.decoder, subject.batch, {.epsilon = 1e-2});
  EXPECT_GT(coarse.kinks, fine.kinks + 10);
  const Subject smooth = drawn(cases()[3].config);  // no ReLU, no kink at any step
  EXPECT_EQ(check_gradients(Context(1), smooth.decoder, smooth.batch, {.epsilon = 1e-2}).kinks, 0);
}

TEST(GradientCheck, FailsWhereNothingWasChecked) {
  const Subject subject = drawn(cases()[0].config);
  const GradientCheck check =
      check_gradients(Context(1), subject.decoder, subject.batch, {.epsilon = 1e-15, .coordinates = 5});
  EXPECT_EQ(check.checked, 0);
  EXPECT_FALSE(check.passed);
}

TEST(GradientCheck, SampleAndThreadsAreReproducible) {
  const Subject subject = drawn(cases()[1].config);
  const GradientCheckOptions options{.coordinates = 100, .seed = 3};
  const GradientCheck one = check_gradients(Context(1), subject.decoder, subject.batch, options);
  const GradientCheck three = check_gradients(Context(3), subject.decoder, subject.batch, options);
  EXPECT_EQ(one.checked + one.skipped + one.kinks, 100);
  EXPECT_EQ(one.max_relative_deviation, three.max_relative_deviation);
  EXPECT_EQ(one.worst, three.worst);
}

TEST(GradientCheck, RefusesAStepThatIsNone) {
  const Subject subject = drawn(cases()[0].config);
  for (double epsilon : {0.0, -1e-6, std::nan("")}) {
    EXPECT_THROW(check_gradients(Context(1), subject.decoder, subject.batch, {.epsilon = epsilon}), Error);
  }
}

// The figure of the article's decoder: all 27,253 coordinates, pre-norm and post-norm.
TEST(GradientCheck, SlowEveryCoordinateOfTheArticlesDecoder) {
  for (NormPlacement placement : {NormPlacement::pre, NormPlacement::post}) {
    TrainOptions options;
    options.model.norm_placement = placement;
    options.batch = 3;
    options.precision = Precision::f64;
    fit_model_to_task(options);
    TrainingState<double> state = new_training<double>(options);
    Batch<double> batch = make_batch<double>(options.task, options.batch);
    draw_batch(batch, options.task, state.random);
    const GradientCheck check = check_gradients(Context(2), state.decoder, batch, {});
    EXPECT_TRUE(check.passed) << check.max_relative_deviation << " at " << check.worst;
    EXPECT_EQ(check.checked + check.skipped + check.kinks, 27253);
    EXPECT_LE(check.forward_mode_deviation, 1e-11);
  }
}

}  // namespace
}  // namespace heedful
