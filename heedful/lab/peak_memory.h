// How much memory the process has taken at most since a moment, as the kernel counts it (Linux: the high-water mark
// of resident pages, which a process may reset for itself).
#ifndef HEEDFUL_LAB_PEAK_MEMORY_H_
#define HEEDFUL_LAB_PEAK_MEMORY_H_

#include "heedful/core/view.h"

namespace heedful {

class PeakMemory {
 public:
  PeakMemory();  // from now on

  // Bytes above what was resident then; −1 where the system does not tell.
  Index growth() const;

 private:
  Index start_ = -1;
};

}  // namespace heedful

#endif  // HEEDFUL_LAB_PEAK_MEMORY_H_
