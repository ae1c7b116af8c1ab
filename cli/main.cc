#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "cli/command.h"
#include "heedful/core/error.h"

namespace {

// Errors are one line, whatever a path or a flag in them holds.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return text;
}

int report(const std::string& message) {
  fmt::print(stderr, "heedful: {}\n", one_line(message));
  return heedful::cli::kBadInput;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Trains, runs, checks and looks inside small Transformer decoders on a CPU.\n"
      "Results go to stdout, progress and messages to stderr. Exit code 0: done, 1: a check failed, 2: bad input.\n",
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
  const auto known = [&](const std::string& name) {
    return !app.get_subcommands([&](const CLI::App* each) { return each->get_name() == name; }).empty();
  };
  try {
    if (argc > 1 && argv[1][0] != '-' && !known(argv[1])) {
      return report(fmt::format("[usage] unknown command \"{}\" (see heedful --help)", argv[1]));
    }
    app.parse(argc, argv);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      return report("[stdout] the output could not be written");
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return report(fmt::format("{} (see heedful --help)", error.what()));
  } catch (const std::bad_alloc&) {
    return report("[memory] this needs more memory than there is");
  } catch (const std::exception& error) {
    return report(error.what());
  }
  return exit_code;
}
