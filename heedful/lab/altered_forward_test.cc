#include "heedful/lab/altered_forward.h"

#include <gtest/gtest.h>

#include "heedful/core/error.h"
#include "heedful/lab/small.h"

namespace heedful {
namespace {

Decoder<float> small_decoder(Position position) {
  DecoderConfig config{.vocabulary = 11, .context = 9, .kv_heads = 2};
  config.position = position;
  Random random(1);
  return {config, initial_parameters<float>(config, random)};
}

Tensor<Index, 2> some_tokens() {
  Random random(2);
  Tensor<Index, 2> tokens({3, 7});
  for (Index& token : tokens) token = random.integer(0, 11);
  return tokens;
}

Tensor<float, 3> copy_of(View<const float, 3> logits) {
  Tensor<float, 3> copy(logits.extents());
  std::copy_n(logits.data(), copy.size(), copy.data());
  return copy;
}

TEST(AlteredForward, WithNothingAlteredHasTheBitsOfTheDecoder) {
  const Context context(1);
  const auto tokens = some_tokens();
  for (const Position position : {Position::learned, Position::rotary, Position::alibi, Position::none}) {
    const auto decoder = small_decoder(position);
    Activations<float> a, b;
    const auto expected = copy_of(decoder_forward<float>(context, a, decoder, tokens));
    const auto altered =
        copy_of(altered_forward<float>(context, b, decoder, tokens, [](AttentionOptions<float>&, Index) {}));
    EXPECT_EQ(changed_bits(expected, altered), 0);
  }
}

TEST(AlteredForward, TheAlterationReachesEveryLayerNamed) {
  const Context context(1);
  const auto tokens = some_tokens();
  const auto decoder = small_decoder(Position::learned);
  const auto run = [&](Index only) {
    Activations<float> a;
    return copy_of(
        altered_forward<float>(context, a, decoder, tokens, [&](AttentionOptions<float>& options, Index layer) {
          if (layer == only) options.causal = false;
        }));
  };
  const auto none = run(-1);
  EXPECT_GT(changed_bits(none, run(0)), 0);
  EXPECT_GT(changed_bits(none, run(1)), 0);
  EXPECT_GT(changed_bits(run(0), run(1)), 0);
}

TEST(AlteredForward, RefusesPostNorm) {
  auto decoder = small_decoder(Position::none);
  decoder.config.norm_placement = NormPlacement::post;
  Activations<float> a;
  EXPECT_THROW(altered_forward<float>(Context(1), a, decoder, some_tokens(), [](AttentionOptions<float>&, Index) {}),
               Error);
}

}  // namespace
}  // namespace heedful
