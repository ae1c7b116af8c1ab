// One command of the program. Each file registers its own subcommand; what its callback returns becomes the exit code:
// 0 done, 1 a check failed, 2 bad usage or input (thrown as heedful::Error).
#ifndef HEEDFUL_CLI_COMMAND_H_
#define HEEDFUL_CLI_COMMAND_H_

#include <CLI/CLI.hpp>

namespace heedful::cli {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kBadInput = 2;
inline constexpr int kInterrupted = 130;

void add_train(CLI::App& app, int& exit_code);
void add_diagnose(CLI::App& app, int& exit_code);
void add_eval(CLI::App& app, int& exit_code);
void add_generate(CLI::App& app, int& exit_code);
void add_gradcheck(CLI::App& app, int& exit_code);
void add_inspect(CLI::App& app, int& exit_code);
void add_lab(CLI::App& app, int& exit_code);
void add_plan(CLI::App& app, int& exit_code);

}  // namespace heedful::cli

#endif  // HEEDFUL_CLI_COMMAND_H_
