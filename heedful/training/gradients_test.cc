#include "heedful/training/gradients.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "heedful/core/error.h"
#include "heedful/training/corpus.h"
#include "heedful/training/trainer.h"

namespace heedful {
namespace {

DecoderConfig small_model() {
  DecoderConfig config;
  config.vocabulary = 11;
  config.context = 6;
  config.width = 16;
  config.heads = config.kv_heads = 2;
  config.feed_forward = 32;
  return config;
}

template <class T>
Decoder<T> small_decoder() {
  Random random(5);
  return {small_model(), initial_parameters<T>(small_model(), random)};
}

// Random tokens; weights that differ from micro-batch to micro-batch, one sequence without any.
template <class T>
Batch<T> uneven_batch(Index sequences) {
  Batch<T> batch = make_windows<T>(sequences, 6);
  Random random(6);
  for (Index b = 0; b < sequences; ++b) {
    for (Index t = 0; t < 6; ++t) {
      batch.tokens(b, t) = random.integer(0, 11);
      batch.targets(b, t) = random.integer(0, 11);
      batch.loss_weights(b, t) = b == 1 ? T{0} : static_cast<T>(t <= b % 6 ? 1 : 0) * static_cast<T>(1 + b % 3);
    }
  }
  return batch;
}

template <class T>
bool same_bits(const Tensor<T, 1>& a, const Tensor<T, 1>& b) {
  return std::memcmp(a.data(), b.data(), sizeof(T) * static_cast<std::size_t>(a.size())) == 0;
}

// The gradient of each position alone, added up without signs: what the roundings of a coordinate's sum scale with.
Tensor<double, 1> magnitudes(const Context& context, const Decoder<double>& decoder, const Batch<double>& batch) {
  Tensor<double, 1> sum(decoder.parameters.extents()), each(decoder.parameters.extents());
  Activations<double> activations;
  double total = 0;
  for (double weight : batch.loss_weights) total += weight;
  for (Index at = 0; at < batch.loss_weights.size(); ++at) {
    const double weight = batch.loss_weights.data()[at];
    if (weight == 0) continue;
    Batch<double> one{batch.tokens.copy(), batch.targets.copy(), Tensor<double, 2>(batch.loss_weights.extents())};
    one.loss_weights.data()[at] = 1;
    decoder_loss_and_gradients(context, each, activations, decoder, one);
    for (Index i = 0; i < sum.size(); ++i) sum(i) += std::abs(each(i)) * weight / total;
  }
  return sum;
}

TEST(Accumulation, MicroBatchesGiveTheGradientOfTheBatch) {
  const Context context(1);
  const Decoder<double> decoder = small_decoder<double>();
  const Batch<double> batch = uneven_batch<double>(12);
  Activations<double> activations;
  Tensor<double, 1> whole(decoder.parameters.extents()), parts(decoder.parameters.extents());
  const double loss = decoder_loss_and_gradients(context, whole, activations, decoder, batch);
  const Tensor<double, 1> scale = magnitudes(context, decoder, batch);
  double largest = 0;
  for (double each : scale) largest = std::max(largest, each);
  for (Index k : {1, 2, 3, 4, 6, 12}) {
    const double same = accumulated_loss_and_gradients(context, parts, activations, decoder, batch, k);
    // Losses: 72 terms of at most ~6, each side within 72 roundings of their mean.
    EXPECT_NEAR(same, loss, 2 * 72 * 1.2e-16 * loss) << k;
    // A coordinate is a sum over N = 72 rows of products that carry a few roundings of dlogits each (the share, the
    // weight's quotient) through 2 blocks: both sides stay within (N + 16) roundings of the sum of magnitudes. What
    // cancels inside one position's gradient (the mean a norm takes out) is of the size of its neighbours' at most.
    for (Index i = 0; i < parts.size(); ++i) {
      ASSERT_NEAR(parts(i), whole(i), 2 * (72 + 16) * 1.2e-16 * (scale(i) + 0.01 * largest)) << k << " " << i;
    }
    if (k == 1) {
      EXPECT_TRUE(same_bits(parts, whole));
      EXPECT_EQ(same, loss);
    }
  }
}

// The mistake this is made against: the mean of the micro-batches' means counts a short sequence as much as a long one.
TEST(Accumulation, IsNotTheMeanOfMeans) {
  const Context context(1);
  const Decoder<double> decoder = small_decoder<double>();
  const Batch<double> batch = uneven_batch<double>(4);
  Activations<double> activations;
  Tensor<double, 1> gradients(decoder.parameters.extents());
  const double right = accumulated_loss_and_gradients(context, gradients, activations, decoder, batch, 4);
  double mean = 0;
  for (Index b : {0, 2, 3}) {
    Batch<double> one = make_windows<double>(1, 6);
    for (Index t = 0; t < 6; ++t) {
      one.tokens(0, t) = batch.tokens(b, t);
      one.targets(0, t) = batch.targets(b, t);
      one.loss_weights(0, t) = batch.loss_weights(b, t);
    }
    mean += decoder_loss(context, activations, decoder, one) / 3;
  }
  EXPECT_GT(std::abs(mean - right), 1e-3);
}

TEST(Accumulation, ThreadsChangeNoBit) {
  const Context one(1), three(3);
  const Decoder<float> decoder = small_decoder<float>();
  const Batch<float> batch = uneven_batch<float>(12);
  Activations<float> activations;
  Tensor<float, 1> a(decoder.parameters.extents()), b(decoder.parameters.extents());
  accumulated_loss_and_gradients(one, a, activations, decoder, batch, 3);
  accumulated_loss_and_gradients(three, b, activations, decoder, batch, 3);
  EXPECT_TRUE(same_bits(a, b));
}

TEST(Accumulation, RefusesWhatDoesNotDivide) {
  const Context context(1);
  const Decoder<float> decoder = small_decoder<float>();
  const Batch<float> batch = uneven_batch<float>(12);
  Activations<float> activations;
  Tensor<float, 1> gradients(decoder.parameters.extents());
  for (Index k : {-1, 0, 5, 24}) {
    EXPECT_THROW(accumulated_loss_and_gradients(context, gradients, activations, decoder, batch, k), Error) << k;
  }
  Batch<float> weightless = make_windows<float>(4, 6);
  weightless.loss_weights.fill(0);
  EXPECT_THROW(accumulated_loss_and_gradients(context, gradients, activations, decoder, weightless, 2), Error);
}

TEST(Clipping, ScalesToTheNormAndLeavesWhatIsWithinIt) {
  for (Index n : {1, 2, 15, 16, 17, 1000}) {
    Tensor<double, 1> gradients({n});
    Random random(7);
    double squares = 0;
    for (double& each : gradients) {
      each = random.normal();
      squares += each * each;
    }
    const double norm = std::sqrt(squares);
    const Tensor<double, 1> before = gradients.copy();
    EXPECT_NEAR(global_norm(gradients), norm, norm * static_cast<double>(n + 2) * 1.2e-16);
    EXPECT_EQ(clip_gradients(gradients, norm * 1.01), global_norm(gradients));
    EXPECT_TRUE(same_bits(gradients, before)) << n;
    clip_gradients(gradients, norm / 3);
    // The norm itself, two roundings an element, and the norm again.
    EXPECT_NEAR(global_norm(gradients), norm / 3, norm * static_cast<double>(n + 6) * 1.2e-16) << n;
    for (Index i = 0; i < n; ++i)
      EXPECT_NEAR(gradients(i) * 3, before(i), std::abs(before(i)) * static_cast<double>(n + 8) * 1.2e-16);
  }
}

TEST(Clipping, FloatsThatOverflowWhenSquaredDoNot) {
  Tensor<float, 1> gradients({3});
  gradients.fill(1e30f);
  EXPECT_NEAR(clip_gradients(gradients, 1), std::sqrt(3.0) * 1e30, 1e24);  // 1e30f is within 6e-8 of 1e30
  EXPECT_NEAR(gradients(0), 1 / std::sqrt(3.0), 1e-7);
  gradients.fill(0);
  EXPECT_EQ(clip_gradients(gradients, 1), 0);
  EXPECT_EQ(gradients(0), 0);
}

}  // namespace
}  // namespace heedful
