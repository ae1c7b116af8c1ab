// Scores are divided by √D, once. What is divided by shows as the slope of log(p_i / p_j) against q·(k_i − k_j).
#include <cmath>

#include "heedful/inspection/faults.h"

namespace heedful::diagnosis {
namespace {

double root(Index n) {
  return std::sqrt(static_cast<double>(n));
}

void missing(Recipe& r) {
  r.scale = [](const Walk&) { return 1.0; };
}

void twice(Recipe& r) {
  r.scale = [once = r.scale](const Walk& w) { return once(w) * once(w); };
}

void inverted(Recipe& r) {
  r.scale = [right = r.scale](const Walk& w) { return 1 / right(w); };
}

void by_model_width(Recipe& r) {
  r.scale = [](const Walk& w) { return 1 / root(w.H * w.D); };
}

void by_value_width(Recipe& r) {
  r.scale = [](const Walk& w) { return 1 / root(w.E); };
}

void by_keys(Recipe& r) {
  r.scale = [](const Walk& w) { return 1 / root(w.Tk); };
}

void by_heads(Recipe& r) {
  r.scale = [](const Walk& w) { return 1 / root(w.H); };
}

void declared_ignored(Recipe& r) {
  r.scale = [](const Walk& w) { return 1 / root(w.D); };
}

void after_softmax(Recipe& r) {
  r.scale = [](const Walk&) { return 1.0; };
  r.normalize = [softmax = r.normalize, right = correct_recipe({}).scale](Walk& w) {
    softmax(w);
    for (double& weight : w.weights) weight *= right(w);
  };
}

}  // namespace

std::vector<Fault> scale_faults() {
  using enum Group;
  return {
      {"scale_missing", scale, kScale, missing, "scores are not divided by √D",
       "weights too sharp, and the more so the wider a head", "Multiply q·k by 1/√D before the softmax."},
      {"scale_twice", scale, kScale, twice, "scores are divided by D: by √D in q and again in q·k",
       "weights too even", "Divide by √D once: either q beforehand or the scores."},
      {"scale_inverted", scale, kScale, inverted, "scores are multiplied by √D instead of divided",
       "weights nearly one-hot", "Multiply by 1/√D, not by √D."},
      {"scale_by_model_width", scale, kScale, by_model_width, "√(H·D) of the whole model stands for √D of one head",
       "too even by √H; right with one head", "Use the width of a head, D = C / H."},
      {"scale_by_value_width", scale, kScale, by_value_width, "√E of the values stands for √D of the queries",
       "right where D = E", "Use the last extent of q, not of v."},
      {"scale_by_keys", scale, kScale, by_keys, "√Tk stands for √D",
       "changes when keys are appended, even hidden ones", "Use the last extent of q, not of the scores."},
      {"scale_by_heads", scale, kScale, by_heads, "√H stands for √D", "changes with the number of heads",
       "Use the last extent of q, not the head axis."},
      {"scale_declared_ignored", scale, kScale, declared_ignored, "1/√D is used though another scale was asked for",
       "right where the scale asked for is 1/√D", "Pass the scale on to the kernel."},
      {"scale_after_softmax", scale, kScale | kNormalize, after_softmax,
       "the weights are multiplied by 1/√D, not the scores", "every row sums to 1/√D",
       "Move the scale in front of the softmax."},
  };
}

}  // namespace heedful::diagnosis
