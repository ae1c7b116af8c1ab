// The decoder's loss written out one scalar at a time, for any scalar type: the formula itself, with nothing shared
// with the kernels. In double it is an oracle for the forward pass, in dual numbers for the backward pass.
#ifndef HEEDFUL_INSPECTION_SCALAR_DECODER_H_
#define HEEDFUL_INSPECTION_SCALAR_DECODER_H_

#include "heedful/core/view.h"
#include "heedful/decoder/config.h"

namespace heedful {

struct ScalarBatch {
  View<const Index, 2> tokens;         // [B, T]
  View<const Index, 2> targets;        // [B, T]
  View<const double, 2> loss_weights;  // [B, T]
};

// parameters [parameter_count(config)]. Scalar is double or Dual.
template <class Scalar>
Scalar scalar_loss(const DecoderConfig& config, const Scalar* parameters, const ScalarBatch& batch);

}  // namespace heedful

#endif  // HEEDFUL_INSPECTION_SCALAR_DECODER_H_
