// A run on disk:
//
//     RUN/config.json              the options, for people and for --config
//     RUN/metrics.jsonl            {"step": 1, "loss": 3.4, "seconds": 0.002} for every step; on text with
//                                  held_out_loss, held_out_bits_per_byte and held_out_loss_all where it was scored
//     RUN/checkpoint.safetensors   the training's state (heedful/training/checkpoint.h), and .previous beside it
//     RUN/best.safetensors         the state with the best held-out score so far, of a run on text
#ifndef HEEDFUL_CLI_RUN_FOLDER_H_
#define HEEDFUL_CLI_RUN_FOLDER_H_

#include <filesystem>
#include <utility>

#include "heedful/training/options.h"

namespace heedful::cli {

class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path checkpoint() const { return path_ / "checkpoint.safetensors"; }
  std::filesystem::path best() const { return path_ / "best.safetensors"; }
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path config() const { return path_ / "config.json"; }

  bool has_checkpoint() const { return std::filesystem::exists(checkpoint()); }
  void require_run() const;  // throws Error where there is no run
  // checkpoint(), or best() where that is asked for. Throws Error where there is none.
  std::filesystem::path chosen(bool best) const;
  void create() const;  // the folder; throws Error where it cannot
  void write_config(const TrainOptions& options) const;

  // Held until the process ends, however it ends: one training at a time in a folder. Throws Error where another is
  // in it.
  void lock() const;

  // The seconds of training up to `step`, as its metrics say; 0 where they do not reach that far.
  double seconds_at(Index step) const;
  // Drops the metrics of steps after `step`, which a resumed run will do again.
  void trim_metrics(Index step) const;

 private:
  std::filesystem::path path_;
};

}  // namespace heedful::cli

#endif  // HEEDFUL_CLI_RUN_FOLDER_H_
