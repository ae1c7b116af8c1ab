// For the tests of kernels only: inputs that repeat, bits that compare, and every vector unit of this machine in
// turn.
#ifndef HEEDFUL_KERNELS_TEST_SUPPORT_H_
#define HEEDFUL_KERNELS_TEST_SUPPORT_H_

#include <bit>
#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

#include "heedful/core/tensor.h"

namespace heedful::testing_support {

// Uniform in [−magnitude, magnitude): 53 bits of the engine, so every standard library draws the same numbers.
class Inputs {
 public:
  explicit Inputs(std::uint64_t seed) : engine_(seed) {}
  double number(double magnitude = 1) { return magnitude * (static_cast<double>(engine_() >> 11) * 0x1p-52 - 1); }
  Index index(Index count) { return static_cast<Index>(engine_() % static_cast<std::uint64_t>(count)); }
  template <class T, int Rank>
  Tensor<T, Rank> tensor(const Extents<Rank>& extents, double magnitude = 1) {
    Tensor<T, Rank> result(extents);
    for (T& element : result) element = static_cast<T>(number(magnitude));
    return result;
  }

 private:
  std::mt19937_64 engine_;
};

template <class T>
auto bits(T value) {
  return std::bit_cast<std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>(value);
}

template <class T>
Tensor<double, 2> widened(const View<T, 2>& view) {
  Tensor<double, 2> result(view.extents());
  for (Index i = 0; i < view.extent(0); ++i) {
    for (Index j = 0; j < view.extent(1); ++j) result(i, j) = static_cast<double>(view(i, j));
  }
  return result;
}

}  // namespace heedful::testing_support

#endif  // HEEDFUL_KERNELS_TEST_SUPPORT_H_
