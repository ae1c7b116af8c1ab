#include "heedful/lab/peak_memory.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace heedful {
namespace {

// A line "VmHWM:   1234 kB" of the process's status, in bytes; −1 where there is none.
Index status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string name; status >> name;) {
    Index kilobytes = -1;
    if (name == key + ":" && status >> kilobytes) return kilobytes * 1024;
    status.ignore(4096, '\n');
  }
  return -1;
}

}  // namespace

PeakMemory::PeakMemory() {
  std::ofstream reset("/proc/self/clear_refs");
  reset << "5" << std::flush;  // the high-water mark starts again from what is resident now
  if (reset.good()) start_ = status_bytes("VmRSS");
}

Index PeakMemory::growth() const {
  const Index peak = status_bytes("VmHWM");
  return start_ < 0 || peak < 0 ? -1 : std::max<Index>(peak - start_, 0);
}

}  // namespace heedful
