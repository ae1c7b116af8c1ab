// The two 16-bit floats: half (IEEE binary16: 5 exponent bits, 10 of fraction) and bfloat16 (the top half of a
// float). Widening is exact; narrowing rounds to nearest, ties to even, overflows to infinity and keeps NaN a NaN.
#ifndef HEEDFUL_CORE_HALF_H_
#define HEEDFUL_CORE_HALF_H_

#include <bit>
#include <cstdint>

namespace heedful {

inline float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16;
  const std::uint32_t exponent = half >> 10 & 0x1F;
  const std::uint32_t fraction = half & 0x3FFu;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000u | fraction << 13);
  if (exponent == 0) {  // zero and subnormals: fraction · 2^-24, exact in float
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | (exponent + (127 - 15)) << 23 | fraction << 13);
}

inline std::uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<std::uint16_t>(sign | 0x7E00u | (magnitude >> 13 & 0x3FFu));
  if (magnitude < 0x38800000u) {
    // Below 2^-14, the least normal half: adding 0.5 leaves no bit below 2^-24, the step of the subnormals.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000u));
  }
  const std::uint32_t rounded = magnitude + 0xFFFu + (magnitude >> 13 & 1u);  // carries into the exponent when due
  if (rounded >= 0x47800000u) return static_cast<std::uint16_t>(sign | 0x7C00u);  // 2^16 and above
  return static_cast<std::uint16_t>(sign | (rounded - ((127u - 15u) << 23)) >> 13);
}

// A bfloat16 in memory; nothing is computed in it.
struct Bfloat16 {
  std::uint16_t bits = 0;
  bool operator==(const Bfloat16&) const = default;
};

inline float bfloat16_to_float(std::uint16_t value) {
  return std::bit_cast<float>(std::uint32_t{value} << 16);
}

inline std::uint16_t float_to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

}  // namespace heedful

#endif  // HEEDFUL_CORE_HALF_H_
