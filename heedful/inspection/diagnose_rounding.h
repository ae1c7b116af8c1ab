// The number types an implementation may have computed in, and how each rounds.
//
//     type   significand bits   unit roundoff u   largest      accumulates in
//     f64    53                 2⁻⁵³              1.8e308      f64
//     f32    24                 2⁻²⁴              3.4e38       f32
//     bf16   8                  2⁻⁸               3.4e38       f32
//     f16    11                 2⁻¹¹              65504        f32
//
// Source: IEEE 754-2019; bfloat16: Kalamkar et al., arXiv:1905.12322, §2.
#ifndef HEEDFUL_INSPECTION_DIAGNOSE_ROUNDING_H_
#define HEEDFUL_INSPECTION_DIAGNOSE_ROUNDING_H_

#include "heedful/core/tensor.h"
#include "heedful/formats/array.h"

namespace heedful::diagnosis {

struct Rounding {
  int bits;               // of the significand, the leading one included
  int smallest_exponent;  // of the smallest normal number
  double largest;
  double unit;              // relative error of one rounding: 2^-bits
  double accumulator_unit;  // the same of the type that sums are kept in
  double tiny;              // absolute error near 0: below the smallest normal number some code flushes to 0
};

// Throws Error where the type is not a floating-point type.
const Rounding& rounding_of(DataType type);

// x to the nearest number of the type, ties to even; ±∞ beyond the largest; NaN stays NaN.
double round_to(const Rounding& type, double x);

// How far x stands from the nearest place where round_to jumps, and how far it jumps there.
struct Jump {
  double distance, height;
};
Jump nearest_jump(const Rounding& type, double x);

template <int Rank>
Tensor<double, Rank> rounded(const Rounding& type, In<double, Rank> from) {
  Tensor<double, Rank> result(from.extents());
  const View<const double, Rank> view = from;
  HEEDFUL_CHECK(view.is_contiguous());
  for (Index at = 0; at < view.size(); ++at) result.data()[at] = round_to(type, view.data()[at]);
  return result;
}

}  // namespace heedful::diagnosis

#endif  // HEEDFUL_INSPECTION_DIAGNOSE_ROUNDING_H_
