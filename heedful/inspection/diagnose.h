// diagnose: which silent mistake did an implementation of attention make?
//
// Every hypothesis (no fault, each fault of the catalogue, then pairs) is simulated in double on the same inputs. Its
// residual is
//     r = max over all answered numbers of |answered − simulated| / σ
// with σ the error that the declared type's rounding may leave (diagnose_error_model.h). A hypothesis fits where
// r ≤ kFits. One fault is named only where it fits and the next one is kMargin times worse; otherwise all that cannot
// be told apart are listed. "Correct" means: indistinguishable from correct on this data, and lists what else would be.
// docs/diagnosis.md explains the rule and what the numbers mean.
#ifndef HEEDFUL_INSPECTION_DIAGNOSE_H_
#define HEEDFUL_INSPECTION_DIAGNOSE_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heedful/core/context.h"
#include "heedful/inspection/diagnose_case.h"

namespace heedful {

inline constexpr double kFits = 4;      // standard deviations
inline constexpr double kMargin = 100;  // how many times worse the next hypothesis must be

enum class Verdict {
  correct,      // indistinguishable from correct on this data
  fault,        // one named fault
  one_of,       // a class of faults that this data cannot tell apart
  two_faults,   // one pair of faults
  one_pair_of,  // a class of pairs
  unknown,      // wrong, but nothing in the catalogue explains it
};
std::string_view name(Verdict verdict);

// A hypothesis and how well it explains the answers.
struct Finding {
  std::vector<std::string> faults;  // none: correct; one; or two
  std::vector<std::string> forms;   // beside each fault: "blocks of 16", or empty
  double residual = 0;
  EmptyRowValue other_empty_row = EmptyRowValue::zero;  // what rows hold that see nothing by mistake

  std::string text() const;  // "a (blocks of 16) + b"
};

// Where the answer differs from the correct one by more than rounding.
struct Location {
  std::string which;                        // the case's name
  std::string array;                        // "out", "weights", "lse", "dq", "dk" or "dv"
  std::vector<Index> first;                 // indices of the first wrong element
  double expected = 0, got = 0;             // there
  Index wrong = 0, total = 0;               // elements
  std::vector<Index> batches, heads, rows;  // that hold a wrong element
};

// A small case on which the implementation, or the simulation of what was found in it, is clearly wrong.
struct Counterexample {
  AttentionCase given;
  Location place;
};

struct Diagnosis {
  Verdict verdict = Verdict::unknown;
  std::vector<Finding> findings;                 // what fits, best first; none where unknown
  Finding correct;                               // how well "correct" explains the answers
  Finding next;                                  // the best hypothesis that does not fit
  std::vector<Finding> residuals;                // of every hypothesis without a second fault, best first
  std::vector<std::string> excluded;             // faults that the answers rule out
  std::vector<std::string> not_excluded;         // faults that would look the same, where the verdict is correct
  std::vector<Location> locations;               // one an array and case that is wrong
  std::vector<std::string> notes;                // what else a reader should know
  std::optional<Counterexample> counterexample;  // the smallest found, where something was found
  bool judged_gradients = false;

  bool is_correct() const { return verdict == Verdict::correct; }
  bool names(std::string_view fault) const;  // among the findings
  std::string fix() const;                   // of the best finding; empty where there is none
};

struct Observation {
  AttentionCase given;
  AttentionAnswer answer;
};

struct DiagnoseOptions {
  bool pairs = true;           // look for two faults where one does not explain the answers
  bool counterexample = true;  // shrink the case for what was found
};

// One verdict over all observations, which are taken to come from the same implementation. Throws Error on bad input
// (check_case, check_answer), and where the work is beyond what can be simulated.
Diagnosis diagnose(const Context& context, std::span<const Observation> observations,
                   const DiagnoseOptions& options = {});

// What the correct implementation, or one with the given faults, answers: rounded to the declared type.
AttentionAnswer simulate(const AttentionCase& given, std::span<const std::string> faults);

}  // namespace heedful

#endif  // HEEDFUL_INSPECTION_DIAGNOSE_H_
