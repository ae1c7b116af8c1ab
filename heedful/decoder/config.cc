#include "heedful/decoder/config.h"

#include <cmath>

#include "heedful/core/json_fields.h"
#include "heedful/decoder/config_names.h"

namespace heedful {
namespace {

constexpr const char* kWhere = "config";

// No real decoder comes near these; products of two extents stay far from the end of an Index.
constexpr Index kMaxExtent = Index{1} << 28;
constexpr Index kMaxWidth = Index{1} << 20;
constexpr Index kMaxLayers = 4096;

void require_extent(const char* key, Index value, Index least, Index most) {
  require(least <= value && value <= most, kWhere, "{}: expected {} to {}, got {}", key, least, most, value);
}

template <class Fields, class Config>
void fields(Fields& f, Config& config) {
  f("vocabulary", config.vocabulary);
  f("context", config.context);
  f("width", config.width);
  f("heads", config.heads);
  f("kv_heads", config.kv_heads);
  f("layers", config.layers);
  f("feed_forward", config.feed_forward);
  f("norm", config.norm, kNormNames);
  f("norm_placement", config.norm_placement, kNormPlacementNames);
  f("norm_epsilon", config.norm_epsilon);
  f("position", config.position, kPositionNames);
  f("rotary_layout", config.rotary_layout, kRotaryLayoutNames);
  f("rotary_base", config.rotary_base);
  f("activation", config.activation, kFeedForwardNames);
  f("scale", config.scale);
  f("softcap", config.softcap);
  f("window", config.window);
  f("bias", config.bias);
  f("output_bias", config.output_bias);
  f("tied", config.tied);
}

}  // namespace

void validate(const DecoderConfig& config) {
  require_extent("vocabulary", config.vocabulary, 1, kMaxExtent);
  require_extent("context", config.context, 1, kMaxExtent);
  require_extent("width", config.width, 1, kMaxWidth);
  require_extent("heads", config.heads, 1, kMaxWidth);
  require_extent("kv_heads", config.kv_heads, 1, kMaxWidth);
  require_extent("layers", config.layers, 1, kMaxLayers);
  require_extent("feed_forward", config.feed_forward, 1, kMaxWidth);
  require_extent("window", config.window, 0, kMaxExtent);
  require(config.width % config.heads == 0, kWhere, "heads: expected a divisor of the width {}, got {}", config.width,
          config.heads);
  require(config.heads % config.kv_heads == 0, kWhere, "kv_heads: expected a divisor of the {} heads, got {}",
          config.heads, config.kv_heads);
  require(config.position != Position::rotary || config.head_width() % 2 == 0, kWhere,
          "position: rotary turns pairs and needs an even head width, got {}", config.head_width());
  require(std::isfinite(config.norm_epsilon) && config.norm_epsilon > 0, kWhere,
          "norm_epsilon: expected a positive number, got {}", config.norm_epsilon);
  require(std::isfinite(config.rotary_base) && config.rotary_base > 0, kWhere,
          "rotary_base: expected a positive number, got {}", config.rotary_base);
  require(std::isfinite(config.softcap) && config.softcap >= 0, kWhere,
          "softcap: expected 0 (off) or a positive number, got {}", config.softcap);
}

void to_json(nlohmann::json& json, const DecoderConfig& config) {
  FieldWriter writer(json);
  fields(writer, config);
}

void from_json(const nlohmann::json& json, DecoderConfig& config) {
  config = DecoderConfig{};
  FieldReader reader(json, kWhere);
  fields(reader, config);
  reader.refuse_unknown();
}

}  // namespace heedful
