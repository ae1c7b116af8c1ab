#include "cli/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <system_error>

#include "heedful/core/error.h"
#include "heedful/formats/bytes.h"

namespace heedful::cli {
namespace {

// Calls line(text, step, seconds) for each whole line of a metrics file, until one says stop. A torn last line, as a
// crash leaves it, ends the walk.
template <class Line>
void for_each_line(const std::filesystem::path& path, Line line) {
  const auto bytes = read_file(path);
  std::istringstream text{std::string(as_text(bytes))};
  for (std::string each; std::getline(text, each) && !text.eof();) {
    const auto json = nlohmann::json::parse(each, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) return;
    if (!line(each, json["step"].template get<Index>(), json.value("seconds", 0.0))) return;
  }
}

}  // namespace

void RunFolder::require_run() const {
  require(std::filesystem::is_directory(path_), "run", "{}: no such folder", path_.string());
  require(has_checkpoint(), "run", "{}: no checkpoint.safetensors in it", path_.string());
}

std::filesystem::path RunFolder::chosen(bool best) const {
  require_run();
  if (!best) return checkpoint();
  require(std::filesystem::exists(this->best()), "run",
          "{}: no best.safetensors in it; runs on text keep one from their first score on", path_.string());
  return this->best();
}

void RunFolder::create() const {
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  require(!error, "run", "{}: cannot make the folder: {}", path_.string(), error.message());
}

void RunFolder::write_config(const TrainOptions& options) const {
  write_file(config(), nlohmann::json(options).dump(2) + "\n");
}

void RunFolder::lock() const {
  const int folder = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  require(folder >= 0 && (flock(folder, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK), "run",
          "{}: another training is writing there", path_.string());
}

double RunFolder::seconds_at(Index step) const {
  double result = 0;
  if (!std::filesystem::exists(metrics())) return result;
  for_each_line(metrics(), [&](const std::string&, Index at, double seconds) {
    if (at <= step) result = seconds;
    return at < step;
  });
  return result;
}

void RunFolder::trim_metrics(Index step) const {
  if (!std::filesystem::exists(metrics())) return;
  std::string kept;
  for_each_line(metrics(), [&](const std::string& text, Index at, double) {
    if (at <= step) kept += text + "\n";
    return at < step;
  });
  write_file(metrics(), kept);
}

}  // namespace heedful::cli
