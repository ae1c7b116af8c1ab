#include "heedful/inspection/diagnose_rounding.h"

#include <algorithm>
#include <cmath>

namespace heedful::diagnosis {
namespace {

Rounding rounding(int bits, int smallest_exponent, double largest, double accumulator_unit, double tiny) {
  const double unit = std::ldexp(1.0, -bits);
  return {bits, smallest_exponent, largest, unit, accumulator_unit, tiny};
}

// The distance between neighbours of the type around x.
double spacing(const Rounding& type, double x) {
  const int exponent = x == 0 ? type.smallest_exponent : std::max(std::ilogb(x), type.smallest_exponent);
  return std::ldexp(1.0, exponent - (type.bits - 1));
}

}  // namespace

const Rounding& rounding_of(DataType type) {
  static const Rounding f64 = rounding(53, -1022, 1.7976931348623157e308, 0x1p-53, 0x1p-1022);
  static const Rounding f32 = rounding(24, -126, 3.4028234663852886e38, 0x1p-24, 0x1p-126);
  static const Rounding bf16 = rounding(8, -126, 3.3895313892515355e38, 0x1p-24, 0x1p-126);
  static const Rounding f16 = rounding(11, -14, 65504, 0x1p-24, 0x1p-25);  // computed in f32: not flushed
  switch (type) {
    case DataType::f64:
      return f64;
    case DataType::f32:
      return f32;
    case DataType::bf16:
      return bf16;
    case DataType::f16:
      return f16;
    default:
      fail("diagnose", "type: expected f64, f32, bf16 or f16, got {}", name(type));
  }
}

double round_to(const Rounding& type, double x) {
  if (!std::isfinite(x) || type.bits >= 53) return x;
  const double step = spacing(type, x);
  const double result = std::nearbyint(x / step) * step;  // both exact: step is a power of two
  return std::abs(result) > type.largest ? std::copysign(HUGE_VAL, x) : result;
}

Jump nearest_jump(const Rounding& type, double x) {
  if (!std::isfinite(x) || type.bits >= 53) return {HUGE_VAL, 0};
  const double step = spacing(type, x);
  const double place = x / step;  // jumps lie half-way between whole numbers
  return {std::abs(place - (std::floor(place) + 0.5)) * step, step};
}

}  // namespace heedful::diagnosis
