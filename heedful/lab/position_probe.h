// How much of a token's position can be read from the decoder's hidden rows, by a linear probe.
//
//     position ≈ w·x + b          x [C] the last block's row; ridge regression on half of the sequences
//     R² = 1 − Σ(position − prediction)² / Σ(position − mean)²      on the other half
//
// The sequences are random symbols, so nothing but the way rows attend can carry position. R² is 0 or below where
// nothing does.
#ifndef HEEDFUL_LAB_POSITION_PROBE_H_
#define HEEDFUL_LAB_POSITION_PROBE_H_

#include "heedful/decoder/decoder.h"

namespace heedful {

enum class ProbeMask { causal, full };

double position_probe(const Context& context, const Decoder<float>& decoder, ProbeMask mask);

// A model of this config as it is before training.
Decoder<float> untrained(const DecoderConfig& config);

}  // namespace heedful

#endif  // HEEDFUL_LAB_POSITION_PROBE_H_
