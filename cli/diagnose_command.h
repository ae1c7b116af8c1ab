// A program that answers cases: './my_attention IN.npz OUT.npz', run by the shell with the two names replaced.
#ifndef HEEDFUL_CLI_DIAGNOSE_COMMAND_H_
#define HEEDFUL_CLI_DIAGNOSE_COMMAND_H_

#include <filesystem>
#include <string>

#include "heedful/inspection/diagnose_case.h"

namespace heedful::cli {

class ProgramUnderTest {
 public:
  explicit ProgramUnderTest(std::string command);  // throws Error where IN.npz or OUT.npz is missing in it
  ~ProgramUnderTest();                             // removes its files
  ProgramUnderTest(const ProgramUnderTest&) = delete;
  ProgramUnderTest& operator=(const ProgramUnderTest&) = delete;

  // Throws Error where the program fails or leaves no answer.
  AttentionAnswer answer(const AttentionCase& given) const;

 private:
  std::string command_;
  std::filesystem::path folder_;
};

}  // namespace heedful::cli

#endif  // HEEDFUL_CLI_DIAGNOSE_COMMAND_H_
