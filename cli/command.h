// One command of the program. Each file registers its own subcommand; what its callback returns becomes the exit code:
// 0 done, 1 a check failed, 2 bad usage or input (thrown as heedful::Error).
#ifndef HEEDFUL_CLI_COMMAND_H_
#define HEEDFUL_CLI_COMMAND_H_

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <string>

namespace heedful::cli {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kBadInput = 2;
inline constexpr int kInterrupted = 130;

// For seeds: a whole number that fits 64 bits, which CLI11 does not insist on for unsigned numbers.
inline std::string check_seed(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? "" : "expected a whole number from 0 below 2^64, got " + text;
}

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
