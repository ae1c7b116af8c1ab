// For tests: runs something once on every instruction set that the kernels are compiled for and this machine has, the
// fallback included, and puts the choice back afterwards.
#ifndef HEEDFUL_KERNELS_EACH_TARGET_H_
#define HEEDFUL_KERNELS_EACH_TARGET_H_

#include <cstdint>

#include "heedful/kernels/simd_targets.h"
#include "hwy/highway.h"

namespace heedful {

// work(name of the target)
template <class Work>
void for_each_target(const Work& work) {
  const auto choose = [](std::int64_t targets) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  };
  const std::int64_t here = hwy::SupportedTargets() & HWY_TARGETS;
  for (int bit = 0; bit < 63; ++bit) {
    const std::int64_t target = std::int64_t{1} << bit;
    if ((here & target) == 0) continue;
    choose(target);
    work(hwy::TargetName(target));
  }
  choose(0);
}

}  // namespace heedful

#endif  // HEEDFUL_KERNELS_EACH_TARGET_H_
