#include "heedful/decoder/decoder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "heedful/core/error.h"
#include "heedful/core/random.h"
#include "heedful/decoder/loss.h"

namespace heedful {
namespace {

struct Shape {
  const char* name;
  DecoderConfig config;
};

DecoderConfig base() {
  DecoderConfig config;
  config.vocabulary = 11;
  config.context = 9;
  config.width = 24;
  config.heads = 4;
  config.kv_heads = 2;
  config.layers = 2;
  config.feed_forward = 20;
  return config;
}

std::vector<Shape> shapes() {
  std::vector<Shape> list;
  const auto add = [&](const char* name, auto change) {
    DecoderConfig config = base();
    change(config);
    list.push_back({name, config});
  };
  add("article", [](auto& c) { c.kv_heads = c.heads; });
  add("post-norm", [](auto& c) { c.norm_placement = NormPlacement::post; });
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
  add("alibi, window, softcap, no scale", [](auto& c) {
    c.position = Position::alibi;
    c.window = 3;
    c.softcap = 5;
    c.scale = false;
    c.kv_heads = 1;
  });
  add("sinusoidal, gelu, interleaved", [](auto& c) {
    c.position = Position::sinusoidal;
    c.activation = FeedForward::gelu;
  });
  return list;
}

template <class T>
Decoder<T> made(const DecoderConfig& config) {
  Random random(5);
  return {config, initial_parameters<T>(config, random)};
}

Tensor<Index, 2> drawn_tokens(Index batch, Index length, Index vocabulary) {
  Random random(6);
  Tensor<Index, 2> tokens({batch, length});
  for (Index& token : tokens) token = random.integer(0, vocabulary);
  return tokens;
}

template <class T>
bool same_bits(View<const T, 1> a, View<const T, 1> b) {
  for (Index i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(T)) != 0) return false;
  }
  return true;
}

template <class T>
class DecoderBits : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(DecoderBits, Types);

TYPED_TEST(DecoderBits, ALogitDoesNotKnowTheBatchTheFutureOrTheThreads) {
  using T = TypeParam;
  for (const auto& [name, config] : shapes()) {
    const Decoder<T> decoder = made<T>(config);
    const Tensor<Index, 2> tokens = drawn_tokens(3, 9, config.vocabulary);
    Activations<T> whole;
    const auto logits = decoder_forward<T>(Context(1), whole, decoder, tokens);
    Activations<T> threaded;
    const auto on_threads = decoder_forward<T>(Context(3), threaded, decoder, tokens);
    for (Index b = 0; b < 3; ++b) {
      for (Index t = 0; t < 9; ++t) {
        Tensor<Index, 2> prefix({1, t + 1});
        for (Index i = 0; i <= t; ++i) prefix(0, i) = tokens(b, i);
        Activations<T> alone;
        const auto prefix_logits = decoder_forward<T>(Context(1), alone, decoder, prefix);
        EXPECT_TRUE(same_bits<T>(prefix_logits[0][t], logits[b][t])) << name << " b=" << b << " t=" << t;
        EXPECT_TRUE(same_bits<T>(on_threads[b][t], logits[b][t])) << name << " b=" << b << " t=" << t;
      }
    }
  }
}

TYPED_TEST(DecoderBits, ALogitDoesNotKnowTheCacheOrTheChunks) {
  using T = TypeParam;
  for (const auto& [name, config] : shapes()) {
    const Decoder<T> decoder = made<T>(config);
    const Tensor<Index, 2> tokens = drawn_tokens(2, 9, config.vocabulary);
    Activations<T> whole;
    const auto logits = decoder_forward<T>(Context(1), whole, decoder, tokens);
    for (const std::vector<Index>& chunks : {std::vector<Index>{1, 1, 1, 1, 1, 1, 1, 1, 1}, {4, 1, 3, 1}, {9}}) {
      KvCache<T> cache({config.layers, 2, config.kv_heads, 9, config.head_width(), config.head_width()});
      Index start = 0;
      for (Index length : chunks) {
        Tensor<Index, 2> chunk({2, length});
        for (Index b = 0; b < 2; ++b) {
          for (Index i = 0; i < length; ++i) chunk(b, i) = tokens(b, start + i);
        }
        Activations<T> activations;
        const auto part = decoder_forward<T>(Context(1), activations, decoder, chunk, &cache);
        for (Index b = 0; b < 2; ++b) {
          for (Index i = 0; i < length; ++i) {
            EXPECT_TRUE(same_bits<T>(part[b][i], logits[b][start + i])) << name << " t=" << start + i;
          }
        }
        start += length;
      }
    }
  }
}

TYPED_TEST(DecoderBits, GradientsDoNotKnowTheThreads) {
  using T = TypeParam;
  for (const auto& [name, config] : shapes()) {
    const Decoder<T> decoder = made<T>(config);
    Batch<T> batch{drawn_tokens(3, 9, config.vocabulary), drawn_tokens(3, 9, config.vocabulary),
                   Tensor<T, 2>({3, 9})};
    batch.loss_weights.fill(1);
    Tensor<T, 1> one(decoder.parameters.extents()), three(decoder.parameters.extents());
    Activations<T> activations;
    const double loss = decoder_loss_and_gradients<T>(Context(1), one, activations, decoder, batch);
    EXPECT_EQ(decoder_loss_and_gradients<T>(Context(3), three, activations, decoder, batch), loss) << name;
    EXPECT_TRUE(same_bits<T>(one.view(), three.view())) << name;
  }
}

// A training step's loss sees only weighted positions, so what stands at the others' targets is nobody's business.
TEST(Decoder, TargetsWithoutWeightAreNotRead) {
  const Decoder<double> decoder = made<double>(base());
  Batch<double> batch{drawn_tokens(2, 9, 11), drawn_tokens(2, 9, 11), Tensor<double, 2>({2, 9})};
  for (Index b = 0; b < 2; ++b) {
    for (Index t = 5; t < 9; ++t) batch.loss_weights(b, t) = 1;
  }
  Activations<double> activations;
  const double loss = decoder_loss<double>(Context(1), activations, decoder, batch);
  for (Index b = 0; b < 2; ++b) {
    for (Index t = 0; t < 5; ++t) batch.targets(b, t) = -1;
  }
  EXPECT_EQ(decoder_loss<double>(Context(1), activations, decoder, batch), loss);
}

TEST(Decoder, RefusesWhatItCannotRead) {
  const Decoder<float> decoder = made<float>(base());
  Activations<float> activations;
  const Context context(1);
  Tensor<Index, 2> tokens({1, 3});
  tokens(0, 1) = 11;
  EXPECT_THROW(decoder_forward<float>(context, activations, decoder, tokens), Error);
  tokens(0, 1) = -1;
  EXPECT_THROW(decoder_forward<float>(context, activations, decoder, tokens), Error);
  EXPECT_THROW(decoder_forward<float>(context, activations, decoder, Tensor<Index, 2>({1, 10})), Error);
  EXPECT_THROW(decoder_forward<float>(context, activations, decoder, Tensor<Index, 2>({1, 0})), Error);
  KvCache<float> cache({2, 1, 2, 9, 6, 6});
  decoder_forward<float>(context, activations, decoder, Tensor<Index, 2>({1, 8}), &cache);
  EXPECT_THROW(decoder_forward<float>(context, activations, decoder, Tensor<Index, 2>({1, 2}), &cache), Error);
}

}  // namespace
}  // namespace heedful
