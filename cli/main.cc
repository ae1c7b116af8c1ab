#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <string>

#include "cli/command.h"
#include "cli/strict_values.h"

namespace {

// Errors are one line, whatever a path or a flag in them holds.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return text;
}

// Never throws, as fmt::print would where stderr takes nothing.
int report(const std::string& message) {
  std::fputs(("heedful: " + one_line(message) + "\n").c_str(), stderr);
  return heedful::cli::kBadInput;
}

// A run's own file must never become stdout or stderr, as the first one opened would where the caller closed those.
// Opened for reading, they still refuse what is written to them.
void hold_standard_streams() {
  int opened = STDIN_FILENO;
  while (opened <= STDERR_FILENO && opened >= 0) opened = open("/dev/null", O_RDONLY);
  if (opened > STDERR_FILENO) close(opened);
}

}  // namespace

int main(int argc, char** argv) {
  hold_standard_streams();
  CLI::App app{
      "Trains, runs, checks and looks inside small Transformer decoders on a CPU.\n"
      "Results go to stdout, progress and messages to stderr. Exit code 0: done, 1: a check failed, 2: bad input,\n"
      "130: a training stopped by a signal, kept as far as it came.\n",
      "heedful"};
  app.set_version_flag("--version", "heedful 0.1.0");
  app.require_subcommand(1);
  app.footer(
      "Example: heedful train --task copy --length 6 --out runs/copy && heedful generate runs/copy --prompt "
      "\"17 3 0 12 7 9\"");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  int exit_code = heedful::cli::kDone;
  heedful::cli::add_train(app, exit_code);
  heedful::cli::add_eval(app, exit_code);
  heedful::cli::add_generate(app, exit_code);
  heedful::cli::add_inspect(app, exit_code);
  heedful::cli::add_lab(app, exit_code);
  heedful::cli::add_gradcheck(app, exit_code);
  heedful::cli::add_diagnose(app, exit_code);
  heedful::cli::add_plan(app, exit_code);
  heedful::cli::refuse_loose_values(app);
  const auto known = [&](const std::string& name) {
    return !app.get_subcommands([&](const CLI::App* each) { return each->get_name() == name; }).empty();
  };
  try {
    if (argc > 1 && argv[1][0] != '-' && !known(argv[1])) {
      return report(fmt::format("[usage] unknown command \"{}\" (see heedful --help)", argv[1]));
    }
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return report(fmt::format("{} (see heedful --help)", error.what()));
    app.exit(error);  // prints --help, --version
  } catch (const std::bad_alloc&) {
    return report("[memory] this needs more memory than there is");
  } catch (const std::exception& error) {
    return report(error.what());
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout.flush())
    return report("[stdout] the output could not be written");
  return exit_code;
}
