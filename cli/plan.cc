// heedful plan: what a decoder costs, in closed form.
#include <fmt/format.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/command.h"
#include "cli/model_flags.h"
#include "heedful/core/enum_names.h"
#include "heedful/decoder/cost.h"

namespace heedful::cli {
namespace {

struct PlanFlags {
  ModelFlags model;
  Index context = 1024, batch = 1, vocabulary = 0;
  std::string dtype = "f32";
  bool json = false;
};

constexpr EnumName<Index> kTypeBytes[] = {{8, "f64"}, {4, "f32"}, {2, "f16"}, {2, "bf16"}};

std::string readable(Index bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.3f} {}", value, kUnits[unit]);
}

void print_text(const DecoderCost& cost, const PlanFlags& flags, const DecoderConfig& config) {
  const auto entries = [](const char* title, const std::vector<CostEntry>& list) {
    if (!list.empty()) fmt::print("{}\n", title);
    for (const auto& entry : list) fmt::print("  {:34} {:>16}\n", entry.name, entry.parameters);
  };
  entries("one block, parameters", cost.block_entries);
  fmt::print("  {:34} {:>16}\n", "total", cost.block_parameters);
  entries("outside the blocks, parameters", cost.outside_entries);
  fmt::print("{:36} {:>16}   {} blocks{}\n", "all parameters", cost.total_parameters, config.layers,
             flags.vocabulary == 0 ? " alone; --vocab adds embeddings and output" : "");
  const auto bytes = [](const char* what, Index value, const std::string& note) {
    fmt::print("{:36} {:>16}   {}{}\n", what, value, readable(value), note);
  };
  bytes("parameter bytes", cost.parameter_bytes, fmt::format(" in {}", flags.dtype));
  bytes("key-value cache bytes", cost.kv_cache_bytes,
        fmt::format(" for {} x {} positions", flags.batch, flags.context));
  bytes("score matrix bytes", cost.score_bytes, " of one layer, where it is stored");
  bytes("activation bytes", cost.activation_bytes, " kept for the backward pass of one step");
  fmt::print("{:36} {:>16}   forward, for the token at the end of the context\n", "operations a token",
             cost.flops_per_token);
}

int run(const PlanFlags& flags) {
  DecoderConfig config;
  apply(flags.model, config);
  config.vocabulary = flags.vocabulary;
  config.context = flags.context;
  const Index element_bytes = enum_value<Index>(flags.dtype, "flags", "--dtype", kTypeBytes);
  const DecoderCost cost = decoder_cost(config, flags.batch, element_bytes);
  if (flags.json) {
    const nlohmann::ordered_json object = {
        {"block_parameters", cost.block_parameters}, {"total_parameters", cost.total_parameters},
        {"parameter_bytes", cost.parameter_bytes},   {"kv_cache_bytes", cost.kv_cache_bytes},
        {"score_bytes", cost.score_bytes},           {"activation_bytes", cost.activation_bytes},
        {"flops_per_token", cost.flops_per_token}};
    fmt::print("{}\n", object.dump());
  } else {
    print_text(cost, flags, config);
  }
  return kDone;
}

}  // namespace

void add_plan(CLI::App& app, int& exit_code) {
  CLI::App& command = *app.add_subcommand("plan", "Parameters, bytes and operations of a decoder, in closed form");
  auto flags = std::make_shared<PlanFlags>();
  add_model_flags(command, flags->model);
  command.add_option("--context", flags->context, "Positions")->capture_default_str();
  command.add_option("--batch", flags->batch, "Sequences at once")->capture_default_str();
  command.add_option("--vocab", flags->vocabulary, "Vocabulary; 0 counts the blocks alone")->capture_default_str();
  command.add_option("--dtype", flags->dtype, "Stored numbers: f64|f32|f16|bf16")->capture_default_str();
  command.add_flag("--json", flags->json, "Print one JSON object");
  command.footer("Example: heedful plan --d-model 512 --heads 8 --layers 24 --context 8192 --batch 4 --dtype f16");
  command.callback([flags, &exit_code] { exit_code = run(*flags); });
}

}  // namespace heedful::cli
