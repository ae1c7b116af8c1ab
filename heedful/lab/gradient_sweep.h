// The article's gradient check, coordinate by coordinate, with the corners of the ReLU told apart.
#ifndef HEEDFUL_LAB_GRADIENT_SWEEP_H_
#define HEEDFUL_LAB_GRADIENT_SWEEP_H_

#include <vector>

#include "heedful/decoder/loss.h"

namespace heedful {

// The article's set-up: width 16, 4 heads, 2 blocks, F = 64, three sequences of 12 random tokens, seed 0.
struct GradientSubject {
  Decoder<double> decoder;
  Batch<double> batch;
  Tensor<double, 1> gradients;
  std::vector<Index> coordinates;  // the first six of each tensor whose gradient exceeds 1e-6
};
GradientSubject article_subject(NormPlacement placement);

// Relative deviations |n − g| / max(|n|, |g|) of n = (L(θ + ε) − L(θ − ε)) / 2ε from the gradient g.
struct GradientSweep {
  double worst = 0;         // of all coordinates, as the article measures
  double worst_smooth = 0;  // of those whose step crosses no corner
  Index kinks = 0;          // coordinates for which a ReLU input has another sign at θ + ε than at θ − ε
  bool worst_is_kink = false;
};
GradientSweep sweep_gradient(const GradientSubject& subject, double epsilon);

}  // namespace heedful

#endif  // HEEDFUL_LAB_GRADIENT_SWEEP_H_
