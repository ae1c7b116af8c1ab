// What a flag's value must look like, before anything reads it.
#ifndef HEEDFUL_CLI_STRICT_VALUES_H_
#define HEEDFUL_CLI_STRICT_VALUES_H_

#include <CLI/CLI.hpp>

namespace heedful::cli {

// Makes every option of every command refuse what CLI11 would let pass as something else: an empty value (taken for no
// value at all), a number with a leading zero (read as octal), hexadecimal, spaces, and numbers that their type cannot
// hold (taken for the largest).
void refuse_loose_values(CLI::App& app);

}  // namespace heedful::cli

#endif  // HEEDFUL_CLI_STRICT_VALUES_H_
