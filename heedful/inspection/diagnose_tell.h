// Which probe shows a fault: for data that cannot exclude it.
#ifndef HEEDFUL_INSPECTION_DIAGNOSE_TELL_H_
#define HEEDFUL_INSPECTION_DIAGNOSE_TELL_H_

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "heedful/inspection/diagnose_case.h"

namespace heedful {

struct TellingProbe {
  std::string probe;  // empty: rounding to this type hides these faults on every probe
  std::vector<std::string> faults;
};

// For each fault the first standard probe of the type on which it stands kMargin standard deviations from correct.
std::vector<TellingProbe> telling_probes(std::span<const std::string> faults, DataType type, RotaryLayout layout);

}  // namespace heedful

#endif  // HEEDFUL_INSPECTION_DIAGNOSE_TELL_H_
