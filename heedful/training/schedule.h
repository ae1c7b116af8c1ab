// How fast each step learns.
//
//     rate(t) = η·t/(warmup + 1)                                         t ≤ warmup, t = 1 the first step
//     rate(t) = η_min + ½(η − η_min)(1 + cos(π·(t − 1 − warmup)/(decay_steps − warmup)))   to t = decay_steps
//     rate(t) = η_min                                                    afterwards
//
// η is Adam's learning_rate. decay_steps = 0: no decay, η after the warm-up. Source: Loshchilov & Hutter,
// arXiv:1608.03983, without restarts.
#ifndef HEEDFUL_TRAINING_SCHEDULE_H_
#define HEEDFUL_TRAINING_SCHEDULE_H_

#include "heedful/core/view.h"

namespace heedful {

struct Schedule {
  Index warmup = 0;
  Index decay_steps = 0;
  double minimum_rate = 0;
  double clip = 0;         // largest global norm of the gradients (gradients.h); 0: not clipped
  Index accumulation = 1;  // micro-batches a step; divides the batch

  bool operator==(const Schedule&) const = default;
};

double learning_rate_at(const Schedule& schedule, double learning_rate, Index step);

}  // namespace heedful

#endif  // HEEDFUL_TRAINING_SCHEDULE_H_
