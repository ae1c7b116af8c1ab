// A decoder of 400 numbers that learns to repeat the token two places back, with one of the article's traps in its
// attention. It exists to show what a practitioner sees first: the loss falls all the same.
#ifndef HEEDFUL_INSPECTION_DIAGNOSE_TUTORIAL_MODEL_H_
#define HEEDFUL_INSPECTION_DIAGNOSE_TUTORIAL_MODEL_H_

#include <cstdint>
#include <string_view>
#include <vector>

namespace heedful::diagnosis {

// The nine traps of the article, in its order.
enum class Trap {
  none,
  scale_missing,
  mask_after_softmax,
  heads_merged_untransposed,
  padding_missing,
  padding_on_queries,
  softmax_over_queries,
  position_missing,
  gradient_step,  // these two are not in the model
  explanation
};
inline constexpr int kTraps = 9;

// The loss of every step of a training run of `steps` steps; the same for the same arguments.
std::vector<double> train_with_trap(Trap trap, int steps, std::uint64_t seed);

}  // namespace heedful::diagnosis

#endif  // HEEDFUL_INSPECTION_DIAGNOSE_TUTORIAL_MODEL_H_
