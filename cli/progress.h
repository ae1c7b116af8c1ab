// Progress on stderr: one line rewritten in place on a terminal, a line every ten seconds elsewhere.
#ifndef HEEDFUL_CLI_PROGRESS_H_
#define HEEDFUL_CLI_PROGRESS_H_

#include <chrono>
#include <string>
#include <string_view>

#include "heedful/core/view.h"

namespace heedful::cli {

class ProgressLine {
 public:
  explicit ProgressLine(std::string label, std::string unit);
  ~ProgressLine();  // ends the line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Shows done/total and the rate, or where no unit was named the percentage; then the time left, followed by
  // `detail`. Cheap enough to call every step.
  void show(Index done, Index total, std::string_view detail = {});

 private:
  using Clock = std::chrono::steady_clock;
  std::string label_, unit_;
  bool terminal_;
  bool shown_ = false;
  Index first_ = -1;  // `done` at the first call: a resumed run does not count what came before
  Clock::time_point start_ = Clock::now(), last_{};
};

}  // namespace heedful::cli

#endif  // HEEDFUL_CLI_PROGRESS_H_
