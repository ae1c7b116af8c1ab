#include "heedful/attention/rotary.h"

#include <cmath>
#include <string_view>

#include "heedful/core/error.h"

namespace heedful {
namespace {

constexpr std::string_view kWhere = "rotary";

template <class T>
void check(const View<T, 4>& y, const View<const T, 4>& x, const View<const Index, 2>& positions,
           const RotaryAngles<T>& angles) {
  const Index batch = x.extent(0), time = x.extent(2), pairs = angles.cos.extent(1);
  require(y.extents() == x.extents(), kWhere, "output: expected the input's extents {}, got {}",
          shape_text(x.extents()), shape_text(y.extents()));
  require(angles.cos.extents() == angles.sin.extents(), kWhere, "sin: expected the extents of cos, {}, got {}",
          shape_text(angles.cos.extents()), shape_text(angles.sin.extents()));
  require(2 * pairs <= x.extent(3), kWhere, "angles: expected at most {} pairs for heads {} wide, got {}",
          x.extent(3) / 2, x.extent(3), pairs);
  require((positions.extent(0) == batch || positions.extent(0) == 1) && positions.extent(1) == time, kWhere,
          "positions: expected [B|1, T] = [{}|1, {}], got {}", batch, time, shape_text(positions.extents()));
  for (Index b = 0; b < positions.extent(0); ++b) {
    for (Index t = 0; t < time; ++t) {
      require(0 <= positions(b, t) && positions(b, t) < angles.cos.extent(0), kWhere,
              "positions({}, {}): expected 0 to {}, got {}", b, t, angles.cos.extent(0) - 1, positions(b, t));
    }
  }
}

// direction 1 turns forward, −1 back.
template <class T>
void rotate(const View<T, 4>& y, const View<const T, 4>& x, const View<const Index, 2>& positions,
            const RotaryAngles<T>& angles, RotaryLayout layout, T direction) {
  check(y, x, positions, angles);
  const auto& [batch, heads, time, width] = x.extents();
  const Index pairs = angles.cos.extent(1);
  const bool interleaved = layout == RotaryLayout::interleaved;
  const Index step = interleaved ? 2 : 1, apart = interleaved ? 1 : pairs;
  for (Index b = 0; b < batch; ++b) {
    for (Index h = 0; h < heads; ++h) {
      for (Index t = 0; t < time; ++t) {
        const Index position = positions(positions.extent(0) == 1 ? 0 : b, t);
        const View<const T, 1> cos = angles.cos[position], sin = angles.sin[position], from = x[b][h][t];
        const View<T, 1> to = y[b][h][t];
        for (Index c = 0; c < pairs; ++c) {
          const T first = from[step * c], second = from[step * c + apart], s = direction * sin[c];
          to[step * c] = first * cos[c] - second * s;
          to[step * c + apart] = first * s + second * cos[c];
        }
        for (Index d = 2 * pairs; d < width; ++d) to[d] = from[d];
      }
    }
  }
}

}  // namespace

template <class T>
RotaryTable<T>::RotaryTable(Index positions, Index rotary_width, double base) {
  require(positions >= 0, kWhere, "positions: expected at least 0, got {}", positions);
  require(rotary_width >= 2 && rotary_width % 2 == 0, kWhere, "width: expected an even number of at least 2, got {}",
          rotary_width);
  require(std::isfinite(base) && base > 0, kWhere, "base: expected a positive number, got {}", base);
  const Index pairs = rotary_width / 2;
  cos_ = Tensor<T, 2>({positions, pairs});
  sin_ = Tensor<T, 2>({positions, pairs});
  for (Index c = 0; c < pairs; ++c) {
    const double frequency = std::pow(base, -2.0 * static_cast<double>(c) / static_cast<double>(rotary_width));
    for (Index p = 0; p < positions; ++p) {
      cos_(p, c) = static_cast<T>(std::cos(static_cast<double>(p) * frequency));
      sin_(p, c) = static_cast<T>(std::sin(static_cast<double>(p) * frequency));
    }
  }
}

template <class T>
void rotary_forward(View<T, 4> y, In<T, 4> x, In<Index, 2> positions,
                    const std::type_identity_t<RotaryAngles<T>>& angles, RotaryLayout layout) {
  rotate(y, x, positions, angles, layout, T{1});
}

template <class T>
void rotary_backward(View<T, 4> dx, In<T, 4> dy, In<Index, 2> positions,
                     const std::type_identity_t<RotaryAngles<T>>& angles, RotaryLayout layout) {
  rotate(dx, dy, positions, angles, layout, T{-1});
}

#define HEEDFUL_INSTANTIATE(T)                                                                               \
  template class RotaryTable<T>;                                                                             \
  template void rotary_forward<T>(View<T, 4>, In<T, 4>, In<Index, 2>, const RotaryAngles<T>&, RotaryLayout); \
  template void rotary_backward<T>(View<T, 4>, In<T, 4>, In<Index, 2>, const RotaryAngles<T>&, RotaryLayout);
HEEDFUL_INSTANTIATE(float)
HEEDFUL_INSTANTIATE(double)
#undef HEEDFUL_INSTANTIATE

}  // namespace heedful
