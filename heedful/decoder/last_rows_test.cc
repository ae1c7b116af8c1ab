// Asking for the last positions alone changes no bit of what is computed.
#include "heedful/decoder/last_rows.h"

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "heedful/decoder/loss.h"
#include "heedful/kernels/cross_entropy.h"

namespace heedful {
namespace {

constexpr Index kBatch = 3, kLength = 7, kVocabulary = 11;

std::vector<DecoderConfig> configs() {
  DecoderConfig article{.vocabulary = kVocabulary, .context = kLength, .width = 16, .heads = 4, .layers = 2};
  article.feed_forward = 24;
  std::vector<DecoderConfig> all(4, article);
  all[0].kv_heads = 4;
  all[1].kv_heads = 2;
  all[1].norm_placement = NormPlacement::post;
  all[2].kv_heads = 1;
  all[2].position = Position::rotary;
  all[2].norm = Norm::rms;
  all[2].activation = FeedForward::swiglu;
  all[2].bias = false;
  all[3].kv_heads = 4;
  all[3].layers = 1;
  all[3].norm_placement = NormPlacement::post;
  all[3].position = Position::alibi;
  all[3].tied = true;
  return all;
}

template <class T>
Batch<T> drawn_batch(Random& random, Index first_counted) {
  Batch<T> batch{Tensor<Index, 2>({kBatch, kLength}), Tensor<Index, 2>({kBatch, kLength}),
                 Tensor<T, 2>({kBatch, kLength})};
  for (Index& token : batch.tokens) token = random.integer(0, kVocabulary);
  for (Index& token : batch.targets) token = random.integer(0, kVocabulary);
  for (Index t = first_counted; t < kLength; ++t) {
    for (Index b = 0; b < kBatch; ++b) batch.loss_weights(b, t) = static_cast<T>((b + t) % 3);
  }
  batch.loss_weights(kBatch - 1, first_counted) = 1;
  return batch;
}

template <class T>
class LastRows : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(LastRows, Types);

TYPED_TEST(LastRows, LogitsKeepTheirBits) {
  using T = TypeParam;
  const Context context(1);
  Random random(1);
  for (const DecoderConfig& config : configs()) {
    const Decoder<T> decoder{config, initial_parameters<T>(config, random)};
    const Batch<T> batch = drawn_batch<T>(random, 0);
    Activations<T> whole, some;
    const auto all = decoder_forward<T>(context, whole, decoder, batch.tokens);
    for (const Index n : {Index{1}, Index{3}, kLength}) {
      const auto last = decoder_forward<T>(context, some, decoder, batch.tokens, nullptr, n);
      ASSERT_EQ(last.extents(), (Extents<3>{kBatch, n, kVocabulary}));
      for (Index b = 0; b < kBatch; ++b) {
        for (Index t = 0; t < n; ++t) {
          for (Index v = 0; v < kVocabulary; ++v) ASSERT_EQ(last(b, t, v), all(b, kLength - n + t, v)) << n;
        }
      }
    }
    EXPECT_THROW(decoder_forward<T>(context, some, decoder, batch.tokens, nullptr, kLength + 1), Error);
  }
}

// A row without loss adds a product with 0 to every sum, or a row of zeros: the same number, to the bit.
TYPED_TEST(LastRows, GradientsKeepTheirBits) {
  using T = TypeParam;
  const Context context(1);
  Random random(2);
  for (const DecoderConfig& config : configs()) {
    const Decoder<T> decoder{config, initial_parameters<T>(config, random)};
    for (const Index first : {Index{0}, Index{4}, kLength - 1}) {
      const Batch<T> batch = drawn_batch<T>(random, first);
      Activations<T> whole, some;
      Tensor<T, 1> expected(decoder.parameters.extents()), got(decoder.parameters.extents());
      const auto logits = decoder_forward<T>(context, whole, decoder, batch.tokens);
      Tensor<T, 3> dlogits(logits.extents());
      const double loss = cross_entropy<T>(
          context, {View<T, 2>(dlogits.data(), whole.logits.extents()), {}}, whole.logits,
          std::span<const Index>(batch.targets.data(), static_cast<std::size_t>(batch.targets.size())),
          View<const T, 1>(batch.loss_weights.data(), {batch.loss_weights.size()}));
      whole.prepare_backward();
      decoder_backward<T>(context, expected.view(), whole, dlogits, decoder, batch.tokens);

      EXPECT_EQ(decoder_loss_and_gradients<T>(context, got, some, decoder, batch), loss);
      EXPECT_EQ(some.wanted, kLength - first);
      for (Index i = 0; i < got.size(); ++i) ASSERT_EQ(got(i), expected(i)) << i;
    }
  }
}

}  // namespace
}  // namespace heedful
