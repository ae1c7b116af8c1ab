// Test support: runs the program as a person would, in a folder of its own.
#ifndef HEEDFUL_CLI_RUN_PROGRAM_H_
#define HEEDFUL_CLI_RUN_PROGRAM_H_

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

namespace heedful::cli {

struct Outcome {
  int exit_code = -1;  // 128 + signal where it was killed by one
  std::string out, err;

  nlohmann::json json() const { return nlohmann::json::parse(out); }
};

class ProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() /
        fmt::format("heedful-cli-{}-{}", testing::UnitTest::GetInstance()->current_test_info()->name(), getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Arguments as a shell reads them. `before` goes in front of the command: "ulimit -f 100;", say.
  Outcome run(const std::string& arguments, const std::string& before = "") const {
    const std::string command =
        fmt::format("cd '{}' && {} '{}' {} >out.txt 2>err.txt", folder_.string(), before, HEEDFUL_PROGRAM, arguments);
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text("out.txt"), text("err.txt")};
  }

  // Exit code 2, nothing on stdout, one line on stderr that holds `part`.
  void expect_refused(const std::string& arguments, const std::string& part, const std::string& before = "") const {
    const Outcome outcome = run(arguments, before);
    EXPECT_EQ(outcome.exit_code, 2) << arguments << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << arguments << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << arguments << "\n" << outcome.err;
  }

  std::string text(const std::string& name) const {
    std::ifstream file(folder_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << content;
  }

  std::filesystem::path folder_;
};

}  // namespace heedful::cli

#endif  // HEEDFUL_CLI_RUN_PROGRAM_H_
