// Two models that others trained, run as configs of ours: a Llama-style story teller and a minGPT that sorts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "heedful/decoder/decoder.h"
#include "heedful/formats/bytes.h"
#include "heedful/formats/npz.h"
#include "heedful/formats/safetensors.h"
#include "heedful/inference/generate.h"

namespace heedful {
namespace {

const std::filesystem::path kModels = std::filesystem::path(HEEDFUL_GOLDENS) / "models";

// A parameter of ours by name, filled from weights that are stored [rows, columns], transposed where asked.
template <class T>
void fill(Decoder<T>& decoder, const std::string& name, const float* from, bool transposed) {
  const auto inventory = parameter_inventory(decoder.config);
  const auto entry = std::ranges::find(inventory, name, &ParameterEntry::name);
  ASSERT_NE(entry, inventory.end()) << name;
  const Index rows = entry->shape[0], columns = entry->shape.size() == 2 ? entry->shape[1] : 1;
  T* to = decoder.parameters.data() + entry->offset;
  for (Index r = 0; r < rows; ++r) {
    for (Index c = 0; c < columns; ++c) {
      to[r * columns + c] = static_cast<T>(transposed ? from[c * rows + r] : from[r * columns + c]);
    }
  }
}

Decoder<float> load_stories() {
  const auto bytes = read_file(kModels / "stories260K/stories260K.bin");
  ByteReader reader(bytes, "stories260K.bin");
  std::vector<Index> header;
  for (int i = 0; i < 7; ++i) header.push_back(static_cast<Index>(reader.take_integer(4, "header")));
  Decoder<float> decoder;
  DecoderConfig& c = decoder.config;
  c.width = header[0];
  c.feed_forward = header[1];
  c.layers = header[2];
  c.heads = header[3];
  c.kv_heads = header[4];
  c.vocabulary = header[5];
  c.context = header[6];
  c.norm = Norm::rms;
  c.position = Position::rotary;
  c.rotary_layout = RotaryLayout::interleaved;
  c.activation = FeedForward::swiglu;
  c.bias = c.output_bias = false;
  c.tied = true;
  decoder.parameters = Tensor<float, 1>({parameter_count(c)});

  const auto take = [&](Index count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    const Bytes taken = reader.take(values.size() * sizeof(float), "weights");
    std::memcpy(values.data(), taken.data(), taken.size());
    return values;
  };
  const auto layers = [&](const char* name, Index size, bool transposed) {
    for (Index layer = 0; layer < c.layers; ++layer) {
      fill(decoder, fmt::format("block.{}.{}", layer, name), take(size).data(), transposed);
    }
  };
  const Index square = c.width * c.width, keys = c.width * c.key_width(), wide = c.width * c.feed_forward;
  fill(decoder, "token_embedding", take(c.vocabulary * c.width).data(), false);
  layers("attention_norm.gain", c.width, false);
  layers("attention.query.weight", square, true);
  layers("attention.key.weight", keys, true);
  layers("attention.value.weight", keys, true);
  layers("attention.output.weight", square, true);
  layers("feed_forward_norm.gain", c.width, false);
  layers("feed_forward.gate.weight", wide, true);
  layers("feed_forward.down.weight", wide, true);
  layers("feed_forward.up.weight", wide, true);
  fill(decoder, "final_norm.gain", take(c.width).data(), false);
  return decoder;
}

std::vector<std::string> load_pieces(Index vocabulary) {
  const auto bytes = read_file(kModels / "stories260K/tok512.bin");
  ByteReader reader(bytes, "tok512.bin");
  reader.take(4, "longest piece");
  std::vector<std::string> pieces;
  for (Index i = 0; i < vocabulary; ++i) {
    reader.take(4, "score");
    const auto length = reader.take_integer(4, "length");
    pieces.emplace_back(as_text(reader.take(length, "piece")));
  }
  return pieces;
}

TEST(TrainedModels, TheStoryTellerTellsItsStory) {
  if (!std::filesystem::exists(kModels)) GTEST_SKIP() << "the trained models are not here: " << kModels;
  const Decoder<float> decoder = load_stories();
  const auto pieces = load_pieces(decoder.config.vocabulary);
  Tensor<Index, 2> start({1, 1});
  start(0, 0) = 1;
  const auto story = generate<float>(Context(1), decoder, start, {.tokens = 90, .cache = true, .sampler = {}});
  std::string text;
  for (Index token : story.tokens) text += pieces[static_cast<std::size_t>(token)];
  text.erase(0, text.find_first_not_of(' '));
  EXPECT_TRUE(text.starts_with(
      "Once upon a time, there was a little girl named Lily. She loved to play outside in the park. One day, she saw "
      "a big, red ball. She wanted to play with it, but it was too high."))
      << text;
  const auto again = generate<float>(Context(1), decoder, start, {.tokens = 90, .cache = false, .sampler = {}});
  EXPECT_EQ(0, std::memcmp(again.logits.data(), story.logits.data(),
                           sizeof(float) * static_cast<std::size_t>(story.logits.size())));
}

// With the pairs of the other layout the same weights tell no story: nothing else gives the mistake away.
TEST(TrainedModels, TheOtherRotaryLayoutTellsAnotherStory) {
  if (!std::filesystem::exists(kModels)) GTEST_SKIP() << "the trained models are not here: " << kModels;
  Decoder<float> decoder = load_stories();
  Tensor<Index, 2> start({1, 1});
  start(0, 0) = 1;
  const auto right = generate<float>(Context(1), decoder, start, {.tokens = 30, .cache = true, .sampler = {}});
  decoder.config.rotary_layout = RotaryLayout::half_split;
  const auto wrong = generate<float>(Context(1), decoder, start, {.tokens = 30, .cache = true, .sampler = {}});
  EXPECT_FALSE(std::ranges::equal(right.tokens, wrong.tokens));
}

Decoder<double> load_sorter() {
  const ArrayMap arrays = read_safetensors(kModels / "gpt-nano-sort/gpt-nano-sort.safetensors").arrays;
  Decoder<double> decoder;
  DecoderConfig& c = decoder.config;
  c.vocabulary = 3;
  c.context = 11;
  c.width = 48;
  c.heads = c.kv_heads = 3;
  c.layers = 3;
  c.feed_forward = 192;
  c.activation = FeedForward::gelu_tanh;
  c.output_bias = false;
  decoder.parameters = Tensor<double, 1>({parameter_count(c)});
  const auto put = [&](const std::string& name, const std::string& from, bool transposed) {
    fill(decoder, name, to_vector<float>(at(arrays, from), from).data(), transposed);
  };
  put("token_embedding", "transformer.wte.weight", false);
  put("position_embedding", "transformer.wpe.weight", false);
  for (Index layer = 0; layer < c.layers; ++layer) {
    const std::string ours = fmt::format("block.{}.", layer), theirs = fmt::format("transformer.h.{}.", layer);
    const auto qkv = to_vector<float>(at(arrays, theirs + "attn.c_attn.weight"), "c_attn");  // [3·C, C]
    fill(decoder, ours + "attention.query.weight", qkv.data(), true);
    fill(decoder, ours + "attention.key.weight", qkv.data() + 48 * 48, true);
    fill(decoder, ours + "attention.value.weight", qkv.data() + 2 * 48 * 48, true);
    put(ours + "attention.output.weight", theirs + "attn.c_proj.weight", true);
    put(ours + "attention.output.bias", theirs + "attn.c_proj.bias", false);
    for (const auto& [our_norm, their_norm] : {std::pair("attention_norm", "ln_1"), {"feed_forward_norm", "ln_2"}}) {
      put(ours + our_norm + ".gain", theirs + their_norm + ".weight", false);
      put(ours + our_norm + ".bias", theirs + their_norm + ".bias", false);
    }
    put(ours + "feed_forward.up.weight", theirs + "mlp.c_fc.weight", true);
    put(ours + "feed_forward.up.bias", theirs + "mlp.c_fc.bias", false);
    put(ours + "feed_forward.down.weight", theirs + "mlp.c_proj.weight", true);
    put(ours + "feed_forward.down.bias", theirs + "mlp.c_proj.bias", false);
  }
  put("final_norm.gain", "transformer.ln_f.weight", false);
  put("final_norm.bias", "transformer.ln_f.bias", false);
  put("unembedding.weight", "lm_head.weight", true);
  return decoder;
}

// What was recorded is float32: each step adds rounding of u = 6e-8 per sum of up to 192 terms, relative to the largest
// number of the array; three blocks of a few such sums stay below 1000·u.
void expect_close(const ArrayMap& recorded, const char* name, const double* ours) {
  const auto values = to_vector<double>(at(recorded, name), name);
  double largest = 0;
  for (double value : values) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(ours[i], values[i], 1000 * 6e-8 * largest) << name << " " << i;
  }
}

// The file lacks the biases of query, key and value, with which the recording was made. The first block's can be had
// back from one recorded row, qkv − norm·W; the other blocks' cannot, so the comparison ends with the first block.
void restore_first_bias(Decoder<double>& decoder, const ArrayMap& recorded) {
  const auto norm = to_tensor<double, 3>(at(recorded, "ln1"), "ln1"),
             qkv = to_tensor<double, 3>(at(recorded, "qkv"), "qkv");
  const auto weights = bind_weights<double>(decoder.config, decoder.parameters.data());
  const auto& block = weights.blocks[0];
  Index column = 0;
  for (const auto* layer : {&block.query, &block.key, &block.value}) {
    for (Index o = 0; o < 48; ++o, ++column) {
      layer->bias[o] = qkv(0, 0, column);
      for (Index i = 0; i < 48; ++i) layer->bias[o] -= norm(0, 0, i) * layer->weight(i, o);
    }
  }
}

TEST(TrainedModels, TheSortersFirstBlockAgreesRoomByRoom) {
  if (!std::filesystem::exists(kModels)) GTEST_SKIP() << "the trained models are not here: " << kModels;
  Decoder<double> decoder = load_sorter();
  const ArrayMap recorded = read_npz(kModels / "gpt-nano-sort/gpt-nano-sort-t0-partials.npz");
  const auto tokens = to_tensor<Index, 2>(at(recorded, "idx"), "idx");
  restore_first_bias(decoder, recorded);
  Activations<double> activations;
  decoder_forward<double>(Context(1), activations, decoder, tokens);
  const auto& first = activations.blocks[0];
  expect_close(recorded, "x", activations.embedded.data());
  expect_close(recorded, "ln1", first.attention_norm.output.data());
  expect_close(recorded, "y", first.heads.data());
  expect_close(recorded, "attnResid", first.middle.data());
  expect_close(recorded, "ln2", first.feed_forward_norm.output.data());
  expect_close(recorded, "fc", first.up.data());
  expect_close(recorded, "gelu", first.hidden.data());
  expect_close(recorded, "block0", first.output.data());
}

}  // namespace
}  // namespace heedful
