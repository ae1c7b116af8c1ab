#include "cli/model_flags.h"

#include "heedful/decoder/config_names.h"

namespace heedful::cli {
namespace {

constexpr const char* kGroup = "Model";

template <class Value>
void add(CLI::App& command, const char* name, std::optional<Value>& value, const std::string& help) {
  command.add_option(name, value, help)->group(kGroup);
}

template <class Enum, std::size_t N>
std::string choices(const char* help, const EnumName<Enum> (&names)[N]) {
  return fmt::format("{}: {}", help, enum_choices<Enum>(std::span<const EnumName<Enum>>(names)));
}

template <class Value>
void set(Value& target, const std::optional<Value>& value) {
  if (value) target = *value;
}

template <class Enum, std::size_t N>
void set(Enum& target, const std::optional<std::string>& text, const char* flag, const EnumName<Enum> (&names)[N]) {
  if (text) target = enum_value<Enum>(*text, "flags", flag, std::span<const EnumName<Enum>>(names));
}

}  // namespace

void add_model_flags(CLI::App& command, ModelFlags& flags) {
  add(command, "--d-model", flags.width, "Width of the model [32]");
  add(command, "--heads", flags.heads, "Query heads; divides the width [4]");
  add(command, "--kv-heads", flags.kv_heads, "Key-value heads; divides the heads: 1 is multi-query [as --heads]");
  add(command, "--layers", flags.layers, "Blocks [2]");
  add(command, "--d-ff", flags.feed_forward, "Width of the feed-forward network [4 x width]");
  add(command, "--norm", flags.norm, choices("Where the norm stands", kNormPlacementNames) + " [pre]");
  add(command, "--norm-kind", flags.norm_kind, choices("Which norm", kNormNames) + " [layer]");
  add(command, "--position", flags.position, choices("Position", kPositionNames) + " [learned]");
  add(command, "--rotary-layout", flags.rotary_layout,
      choices("Pairs that turn together", kRotaryLayoutNames) + " [half_split]");
  add(command, "--rotary-base", flags.rotary_base, "Base of the rotary angles [10000]");
  add(command, "--activation", flags.activation, choices("Feed-forward", kFeedForwardNames) + " [relu]");
  add(command, "--softcap", flags.softcap, "Scores become cap * tanh(score / cap); 0 is off [0]");
  add(command, "--window", flags.window, "Each token sees this many, itself among them; 0 is all [0]");
  command.add_flag("--no-scale", flags.no_scale, "Scores without the division by the root of the head width")
      ->group(kGroup);
  command.add_flag("--no-bias", flags.no_bias, "Linear layers and norms without biases")->group(kGroup);
  command.add_flag("--tied", flags.tied, "The output uses the token embedding, and no bias")->group(kGroup);
}

void apply(const ModelFlags& flags, DecoderConfig& config) {
  set(config.width, flags.width);
  if (flags.width) config.feed_forward = 4 * *flags.width;
  set(config.feed_forward, flags.feed_forward);
  set(config.heads, flags.heads);
  if (flags.heads) config.kv_heads = *flags.heads;
  set(config.kv_heads, flags.kv_heads);
  set(config.layers, flags.layers);
  set(config.norm_placement, flags.norm, "--norm", kNormPlacementNames);
  set(config.norm, flags.norm_kind, "--norm-kind", kNormNames);
  set(config.position, flags.position, "--position", kPositionNames);
  set(config.rotary_layout, flags.rotary_layout, "--rotary-layout", kRotaryLayoutNames);
  set(config.rotary_base, flags.rotary_base);
  set(config.activation, flags.activation, "--activation", kFeedForwardNames);
  set(config.softcap, flags.softcap);
  set(config.window, flags.window);
  if (flags.no_scale) config.scale = false;
  if (flags.no_bias) config.bias = config.output_bias = false;
  if (flags.tied) {
    config.tied = true;
    config.output_bias = false;
  }
}

}  // namespace heedful::cli
