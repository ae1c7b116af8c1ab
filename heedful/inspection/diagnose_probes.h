// A few small inputs on which the faults of the catalogue differ from correct and from one another. A usual test
// (square, full, H = G, scores near 0) leaves a third of them looking correct; these leave none that rounding does
// not hide.
//
//     grouped   H ≠ G, Tq ≠ Tk, D = E, a second sequence that is not full
//     wide      D ≠ E with E ≥ Tk, so that the weights can be recovered from the output; a scale of its own
//     offsets   each sequence continues at its own place
//     window    a sliding window over cached keys
//     left      padding on the left
//     large     scores 60 times larger, rising along the keys
//     empty     one sequence holds no key at all
//     masked    a keep-matrix, a bias and packed documents of their own for every head and sequence, a softcap
//     hidden    very large scores behind the mask, and rows whose visible scores are all very low
//     hidden_nan  NaN behind the mask, where asked for
//     square    Tq = Tk and H = G, where transposes and exchanges of gradients can hide
//     long      more keys than the usual blocks of an online softmax, and no multiple of them
//     rotary    rotary positions, with padding on the left
//     cached    rotary positions that continue a cache
#ifndef HEEDFUL_INSPECTION_DIAGNOSE_PROBES_H_
#define HEEDFUL_INSPECTION_DIAGNOSE_PROBES_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "heedful/inspection/diagnose_case.h"

namespace heedful {

// What the implementation under test can do. Probes use nothing else.
struct ProbeFeatures {
  bool causal = true;
  bool padding = true;
  bool left_padding = false;
  bool groups = true;
  bool window = false;
  bool offsets = false;
  bool empty_rows = false;  // a sequence without any key
  bool scale = false;       // a scale other than 1/√D
  bool softcap = false;
  bool bias = false;
  bool mask = false;  // a keep-matrix
  bool documents = false;
  bool rotary = false;  // with the layout below
  bool gradients = false;
  bool hidden_nan = false;  // NaN in padded keys and values

  static ProbeFeatures all();
};

struct ProbeOptions {
  ProbeFeatures features;
  DataType type = DataType::f32;                  // all inputs are exact in it
  Alignment alignment = Alignment::bottom_right;  // of causal order where Tq ≠ Tk
  RotaryLayout layout = RotaryLayout::half_split;
  std::uint64_t seed = 0;
};

// Throws Error where a name of the list "causal,padding,…" is none of the above; "all" stands for all but hidden_nan.
ProbeFeatures parse_features(std::string_view list);

std::vector<AttentionCase> standard_probes(const ProbeOptions& options);

// A usual square test: T = 4, H = G, no padding, no mask but causality.
AttentionCase square_case(const ProbeOptions& options);

}  // namespace heedful

#endif  // HEEDFUL_INSPECTION_DIAGNOSE_PROBES_H_
