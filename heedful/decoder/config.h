// The shape of a decoder: every choice that changes its arithmetic, and nothing else. Saved with the model.
//
//     article's decoder   DecoderConfig{}                       (with vocabulary and context set)
//     GPT-2's shape       gelu_tanh, tied, no output bias
//     Llama's shape       rms, rotary half_split, swiglu, no bias
#ifndef HEEDFUL_DECODER_CONFIG_H_
#define HEEDFUL_DECODER_CONFIG_H_

#include <nlohmann/json_fwd.hpp>

#include "heedful/attention/rotary.h"
#include "heedful/core/view.h"

namespace heedful {

enum class Norm { layer, rms };
enum class NormPlacement { pre, post };  // x + f(norm(x)), or norm(x + f(x))
enum class Position { learned, sinusoidal, rotary, alibi, none };
enum class FeedForward { relu, gelu, gelu_tanh, swiglu };

struct DecoderConfig {
  Index vocabulary = 0;      // V
  Index context = 0;         // longest sequence
  Index width = 32;          // C
  Index heads = 4;           // H
  Index kv_heads = 4;        // G; H = G · group
  Index layers = 2;          // L
  Index feed_forward = 128;  // F
  Norm norm = Norm::layer;
  NormPlacement norm_placement = NormPlacement::pre;
  double norm_epsilon = 1e-5;
  Position position = Position::learned;
  RotaryLayout rotary_layout = RotaryLayout::half_split;
  double rotary_base = 10000;
  FeedForward activation = FeedForward::relu;
  bool scale = true;        // scores divided by √D
  double softcap = 0;       // 0: off
  Index window = 0;         // 0: off; counts the current token
  bool bias = true;         // of the linear layers and the layer normalizations
  bool output_bias = true;  // of the unembedding
  bool tied = false;        // unembedding = token embeddingᵀ

  Index head_width() const { return width / heads; }           // D
  Index key_width() const { return kv_heads * head_width(); }  // of a row of keys, or of values
  bool gated() const { return activation == FeedForward::swiglu; }

  bool operator==(const DecoderConfig&) const = default;
};

// Throws Error naming the first field that makes no decoder.
void validate(const DecoderConfig& config);

// Keys are the field names. from_json takes the default for a key that is missing and throws Error for one that is
// unknown or holds another type.
void to_json(nlohmann::json& json, const DecoderConfig& config);
void from_json(const nlohmann::json& json, DecoderConfig& config);

}  // namespace heedful

#endif  // HEEDFUL_DECODER_CONFIG_H_
