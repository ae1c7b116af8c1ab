// Flags that shape a model, shared by the commands that build one. A flag that is not given leaves the config alone.
#ifndef HEEDFUL_CLI_MODEL_FLAGS_H_
#define HEEDFUL_CLI_MODEL_FLAGS_H_

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "heedful/decoder/config.h"

namespace heedful::cli {

struct ModelFlags {
  std::optional<Index> width, heads, kv_heads, layers, feed_forward, window;
  std::optional<std::string> norm, norm_kind, position, rotary_layout, activation;
  std::optional<double> rotary_base, softcap;
  bool no_scale = false, no_bias = false, tied = false;
};

void add_model_flags(CLI::App& command, ModelFlags& flags);

// Where only the width is given the feed-forward width is 4 · width, and where only the heads are given there are as
// many key-value heads.
void apply(const ModelFlags& flags, DecoderConfig& config);

}  // namespace heedful::cli

#endif  // HEEDFUL_CLI_MODEL_FLAGS_H_
