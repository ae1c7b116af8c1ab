#include "heedful/attention/position.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include "heedful/core/error.h"

namespace heedful {

template <class T>
void sinusoidal_positions(View<T, 2> table) {
  const Index width = table.extent(1);
  for (Index c = 0; c < width; ++c) {
    const double wavelength = std::pow(10000.0, static_cast<double>(c - c % 2) / static_cast<double>(width));
    for (Index p = 0; p < table.extent(0); ++p) {
      const double angle = static_cast<double>(p) / wavelength;
      table(p, c) = static_cast<T>(c % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
}
template void sinusoidal_positions<float>(View<float, 2>);
template void sinusoidal_positions<double>(View<double, 2>);

Tensor<double, 1> alibi_slopes(Index heads) {
  require(heads >= 1, "alibi", "heads: expected at least 1, got {}", heads);
  Tensor<double, 1> slopes({heads});
  const Index power = static_cast<Index>(std::bit_floor(static_cast<std::uint64_t>(heads)));
  for (Index h = 0; h < heads; ++h) {
    const Index half_steps = h < power ? 2 * (h + 1) : 2 * (h - power) + 1;  // of 4/H' in the exponent
    slopes(h) = std::exp2(-4.0 * static_cast<double>(half_steps) / static_cast<double>(power));
  }
  return slopes;
}

}  // namespace heedful
