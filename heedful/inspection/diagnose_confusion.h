// The confusion matrix of the catalogue: every fault, answered on the probes in each type, and what is made of it.
#ifndef HEEDFUL_INSPECTION_DIAGNOSE_CONFUSION_H_
#define HEEDFUL_INSPECTION_DIAGNOSE_CONFUSION_H_

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "heedful/core/context.h"
#include "heedful/formats/array.h"

namespace heedful {

// How close a verdict came to the truth.
enum class Outcome {
  named,          // exactly what was wrong
  one_named,      // of two faults, one
  in_class,       // listed among what the data cannot tell apart
  looks_correct,  // hidden by the type's rounding
  unknown,        // wrong, not explained
  mistaken,       // something else was named, or a class without the truth
};
inline constexpr std::size_t kOutcomes = 6;
std::string_view name(Outcome outcome);

struct ConfusionRow {
  std::vector<std::string> truth;  // one fault or two
  std::string text;                // and their forms
  DataType type = DataType::f32;
  Outcome outcome = Outcome::unknown;
  std::string said;                  // the best finding, or the verdict
  std::vector<std::string> fitting;  // others that fit as well
  std::size_t near = 0;              // others that do not fit but are less than kMargin times worse
};

struct Confusion {
  std::vector<ConfusionRow> rows;

  std::array<std::size_t, kOutcomes> count(DataType type) const;
};

// All forms of all faults in each type.
Confusion confuse_singles(const Context& context, const std::vector<DataType>& types);

// Every `stride`-th pair of forward faults that can be had at once, from `first` on.
Confusion confuse_pairs(const Context& context, DataType type, std::size_t first, std::size_t stride);

// As a page of Markdown: counts, then every row that is not named.
std::string confusion_text(const Confusion& confusion);

}  // namespace heedful

#endif  // HEEDFUL_INSPECTION_DIAGNOSE_CONFUSION_H_
