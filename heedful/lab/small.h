// Small helpers that several experiments share: drawing arrays, attention on one call, deviations.
#ifndef HEEDFUL_LAB_SMALL_H_
#define HEEDFUL_LAB_SMALL_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "heedful/attention/attention.h"
#include "heedful/core/random.h"
#include "heedful/core/tensor.h"

namespace heedful {

// Normals in the order of memory, as NumPy's rng.normal(size=…) / divisor.
template <class T = double, int Rank>
Tensor<T, Rank> draw_normal(Random& random, const std::array<Index, static_cast<std::size_t>(Rank)>& extents,
                            double divisor = 1) {
  Tensor<T, Rank> result(extents);
  for (T& x : result) x = static_cast<T>(random.normal() / divisor);
  return result;
}

// The largest |a − b|; NaN where either holds one.
template <class A, class B>
double largest_deviation(const A& a, const B& b) {
  double largest = 0;
  auto other = b.begin();
  for (const auto x : a) {
    const double deviation = std::abs(static_cast<double>(x) - static_cast<double>(*other++));
    if (!(deviation <= largest)) largest = deviation;
  }
  return largest;
}

// How many elements differ in any bit.
template <class T, int Rank>
Index changed_bits(const Tensor<T, Rank>& a, const Tensor<T, Rank>& b) {
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  Index changed = 0;
  for (Index i = 0; i < a.size(); ++i)
    changed += std::bit_cast<Bits>(a.data()[i]) != std::bit_cast<Bits>(b.data()[i]);
  return changed;
}

template <class T>
struct Attended {
  Tensor<T, 4> out;      // [B, H, Tq, E]
  Tensor<T, 4> weights;  // [B, H, Tq, Tk]
};

template <class T>
Attended<T> attend(const Context& context, const AttentionInputs<T>& inputs,
                   const AttentionOptions<T>& options = {}) {
  const Extents<4> q = inputs.q.extents();
  Attended<T> result{Tensor<T, 4>({q[0], q[1], q[2], inputs.v.extent(3)}),
                     Tensor<T, 4>({q[0], q[1], q[2], inputs.k.extent(2)})};
  AttentionOutputs<T> outputs;
  outputs.out = result.out;
  outputs.weights = result.weights;
  attention_forward(context, outputs, inputs, options);
  return result;
}

// [1, 1, rows, columns] with these numbers.
inline Tensor<double, 4> matrix(Index rows, Index columns, std::initializer_list<double> numbers) {
  Tensor<double, 4> result({1, 1, rows, columns});
  std::ranges::copy(numbers, result.begin());
  return result;
}

// [1, 1, n, n]: as keys it makes the queries the scores, as values it makes the output the weights.
inline Tensor<double, 4> identity(Index n) {
  Tensor<double, 4> result({1, 1, n, n});
  for (Index i = 0; i < n; ++i) result(0, 0, i, i) = 1;
  return result;
}

}  // namespace heedful

#endif  // HEEDFUL_LAB_SMALL_H_
