#include "cli/diagnose_command.h"

#include <sys/wait.h>

#include <cstdlib>

#include "heedful/core/error.h"
#include "heedful/formats/npz.h"
#include "heedful/inspection/diagnose_probe_files.h"

namespace heedful::cli {
namespace {

constexpr std::string_view kInput = "IN.npz", kOutput = "OUT.npz";

void replace(std::string& text, std::string_view what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
}

std::string quoted(const std::filesystem::path& path) {
  std::string text = path.string();
  replace(text, "'", "'\\''");
  return "'" + text + "'";
}

}  // namespace

ProgramUnderTest::ProgramUnderTest(std::string command) : command_(std::move(command)) {
  require(command_.find(kInput) != std::string::npos && command_.find(kOutput) != std::string::npos, "diagnose",
          "command: expected {} and {} in it, got '{}'", kInput, kOutput, command_);
  std::string pattern = (std::filesystem::temp_directory_path() / "heedful-diagnose-XXXXXX").string();
  require(mkdtemp(pattern.data()) != nullptr, "diagnose", "command: no folder for its files can be made in {}",
          std::filesystem::temp_directory_path().string());
  folder_ = pattern;
}

ProgramUnderTest::~ProgramUnderTest() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

AttentionAnswer ProgramUnderTest::answer(const AttentionCase& given) const {
  const std::filesystem::path input = folder_ / (given.name + ".npz"), output = folder_ / (given.name + ".out.npz");
  write_npz(input, case_arrays(given));
  // Its output must not mix with the verdict. The line break ends a comment in it.
  std::string line = "(" + command_ + "\n) </dev/null 1>&2";
  replace(line, kOutput, quoted(output));
  replace(line, kInput, quoted(input));
  const int status = std::system(line.c_str());
  require(status != -1, "diagnose", "command: no shell could be started");
  require(!WIFSIGNALED(status), "diagnose", "command: expected exit code 0 on probe '{}', got signal {}", given.name,
          WTERMSIG(status));
  require(WEXITSTATUS(status) == 0, "diagnose", "command: expected exit code 0 on probe '{}', got {}", given.name,
          WEXITSTATUS(status));
  require(std::filesystem::exists(output), "diagnose", "command: expected it to write {}, got no file for probe '{}'",
          kOutput, given.name);
  return read_answer(read_npz(output), given, {});
}

}  // namespace heedful::cli
