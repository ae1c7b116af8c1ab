#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <utility>

namespace heedful::cli {
namespace {

std::string duration(double seconds) {
  const auto whole = std::lround(seconds);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

std::string bar(double share) {
  constexpr int kWidth = 24;
  const int full = static_cast<int>(share * kWidth);
  return std::string(static_cast<std::size_t>(full), '#') + std::string(static_cast<std::size_t>(kWidth - full), '.');
}

}  // namespace

ProgressLine::ProgressLine(std::string label, std::string unit)
    : label_(std::move(label)), unit_(std::move(unit)), terminal_(isatty(STDERR_FILENO) != 0) {}

ProgressLine::~ProgressLine() {
  if (terminal_ && shown_) std::fputc('\n', stderr);
}

void ProgressLine::show(Index done, Index total, std::string_view detail) {
  const auto now = Clock::now();
  if (first_ < 0) {
    first_ = done;
    start_ = now;
    if (!terminal_) last_ = now;
  }
  const auto since = std::chrono::duration<double>(now - last_).count();
  if (since < (terminal_ ? 0.1 : 10.0) && !(terminal_ && done == total)) return;
  last_ = now;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const double rate = elapsed > 0 ? static_cast<double>(done - first_) / elapsed : 0;
  const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 1;
  std::string line = fmt::format("{} [{}] ", label_, bar(share));
  line += unit_.empty() ? fmt::format("{:.1f} %", 100 * share) : fmt::format("{}/{} {}", done, total, unit_);
  if (rate > 0) {
    if (!unit_.empty()) line += fmt::format(", {:.0f} {}/s", rate, unit_);
    line += fmt::format(", {} left", duration(static_cast<double>(total - done) / rate));
  }
  if (!detail.empty()) line += fmt::format(", {}", detail);
  std::fputs((terminal_ ? "\r" + line + "\x1b[K" : line + "\n").c_str(), stderr);
  std::fflush(stderr);
  shown_ = true;
}

}  // namespace heedful::cli
