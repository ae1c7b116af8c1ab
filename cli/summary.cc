#include "cli/summary.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace heedful::cli {

void print_summary(const Summary& summary, const RunFolder& folder, bool json) {
  const double rate = summary.seconds > 0 ? static_cast<double>(summary.steps) / summary.seconds : 0;
  if (json) {
    const nlohmann::ordered_json object = {{"parameters", summary.parameters},
                                           {"steps", summary.steps},
                                           {"final_loss", summary.final_loss},
                                           {"accuracy_token", summary.accuracy.token},
                                           {"accuracy_sequence", summary.accuracy.sequence},
                                           {"seconds", summary.seconds},
                                           {"steps_per_second", rate},
                                           {"run", folder.path().string()}};
    fmt::print("{}\n", object.dump());
    return;
  }
  fmt::print("parameters           {}\n", summary.parameters);
  fmt::print("steps                {}  ({:.1f} s of training, {:.0f} steps/s)\n", summary.steps, summary.seconds,
             rate);
  fmt::print("final loss           {:.6f}\n", summary.final_loss);
  fmt::print("accuracy             {:.3f} per token, {:.3f} per sequence, by generation\n", summary.accuracy.token,
             summary.accuracy.sequence);
  fmt::print("run                  {}\n", folder.path().string());
}

}  // namespace heedful::cli
