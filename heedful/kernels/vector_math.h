// exp, tanh and erf of many numbers at once, on the best instruction set of the machine; the bits are the same on
// all. Method and error bounds: vector_math-inl.h, which kernels include to have the functions inline.
#ifndef HEEDFUL_KERNELS_VECTOR_MATH_H_
#define HEEDFUL_KERNELS_VECTOR_MATH_H_

#include <span>
#include <type_traits>

namespace heedful {

// y[i] = f(x[i]); y may be x. The spans must be of one length.
template <class T>
void vector_exp(std::span<T> y, std::type_identity_t<std::span<const T>> x);
template <class T>
void vector_exp_flushed(std::span<T> y, std::type_identity_t<std::span<const T>> x);  // for x ≤ 0: subnormals are 0
template <class T>
void vector_tanh(std::span<T> y, std::type_identity_t<std::span<const T>> x);
template <class T>
void vector_erf(std::span<T> y, std::type_identity_t<std::span<const T>> x);

}  // namespace heedful

#endif  // HEEDFUL_KERNELS_VECTOR_MATH_H_
