// What an answer says without any hypothesis: the weights behind it, where they can be recovered. With V [Tk, E] of
// full row rank, out = P·V has one solution for each row of P; its sums, signs and support can then be read.
#ifndef HEEDFUL_INSPECTION_DIAGNOSE_RECOVER_H_
#define HEEDFUL_INSPECTION_DIAGNOSE_RECOVER_H_

#include <optional>
#include <string>
#include <vector>

#include "heedful/inspection/diagnose.h"
#include "heedful/inspection/diagnose_simulation.h"

namespace heedful::diagnosis {

struct RecoveredWeights {
  Tensor<double, 4> weights;  // [B, H, Tq, Tk]
  double error = 0;           // what rounding may have done to any of them
};

// The weights as answered, or recovered from the output by least squares; nothing where E < Tk, V is nearly singular,
// or a number is not finite.
std::optional<RecoveredWeights> recover_weights(const Walk& correct, const AttentionAnswer& answer);

// One line: row sums, negative weights, weight on hidden keys. Empty where nothing can be recovered.
std::string describe_weights(const Walk& correct, const AttentionAnswer& answer);

struct Dropout {
  double rate = 0;
  double residual = 0;  // of the weights that were kept, in units of the recovered weights' error
};

// A dropout that was left on leaves every weight either 0 or 1/(1 − rate) times what it should be. Nothing where some
// recovered weight is neither, or none was dropped.
std::optional<Dropout> find_dropout(const Walk& correct, const AttentionAnswer& answer);

}  // namespace heedful::diagnosis

#endif  // HEEDFUL_INSPECTION_DIAGNOSE_RECOVER_H_
