// exp, tanh and erf on vectors of float or double, to be included in files that are compiled once a target. Their
// bits are the same on every target: the algorithm is one, its multiply-adds are fused, nothing else rounds twice.
//
//     exp   x = n·ln 2 + r with |r| ≤ ln(2)/2 (Cody & Waite), eʳ = 1 + r·(1 + r·q(r)), times 2ⁿ
//     tanh  m/(m + 2) with m = exp(2|x|) − 1 = 2ⁿ·(r + r²·q(r)) + (2ⁿ − 1), so that nothing cancels near 0
//     erf   x + x·P(x²) for |x| < 1, else 1 − exp(−x²)·Q(|x|)
//
// Errors stay below these bounds, in units in the last place (vector_math_test.cc; every float, its nightly test):
//
//               exp     ExpFlushed   tanh    erf
//     float     0.95    0.95         2.6     1
//     double    0.95    0.95         2.7     1.15
//
// NaN gives NaN. Exp is 0 below and ∞ above its range and rounds into the subnormals; ExpFlushed takes x ≤ 0 only and
// gives 0 where the result would be subnormal, which is what a softmax wants.
//
// The polynomials are minimax fits (Remez) of this project, their coefficients rounded to the type; the forms are
// those of Muller, Elementary Functions, 3rd ed., §11.
#if defined(HEEDFUL_KERNELS_VECTOR_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEEDFUL_KERNELS_VECTOR_MATH_INL_H_
#undef HEEDFUL_KERNELS_VECTOR_MATH_INL_H_
#else
#define HEEDFUL_KERNELS_VECTOR_MATH_INL_H_
#endif

#include "heedful/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heedful {
namespace HWY_NAMESPACE {

template <class T>
struct MathConstants;

template <>
struct MathConstants<float> {
  static constexpr int kMantissaBits = 23, kExponentBias = 127;
  static constexpr float kRounder = 0x1.8p23f;  // x + kRounder has the integer nearest x in its low bits
  static constexpr float kLog2E = 0x1.715476p0f;
  static constexpr float kLn2High = 0x1.62e4p-1f, kLn2Low = 0x1.7f7d1cp-20f;  // n·kLn2High is exact
  static constexpr float kExpOverflow = 89, kExpUnderflow = -104.5;           // beyond: ∞ and 0
  static constexpr float kExpFlush = -0x1.5d58ap6f;                           // ln 2⁻¹²⁶
  static constexpr float kExpm1[] = {0x1.fffffep-2f, 0x1.5554bp-3f, 0x1.555674p-5f, 0x1.1227bp-7f, 0x1.6bec04p-10f};
  static constexpr float kTanhOne = 9.5;  // tanh rounds to 1 from here on
  static constexpr float kErfOne = 4, kErfMiddle = 2.5;
  static constexpr float kErfSmall[] = {0.12837917f,   -0.37612626f,    0.112835854f,  -0.026853811f,
                                        0.0051883277f, -0.00080101925f, 7.8538586e-05f};
  static constexpr float kErfTail[] = {0.21080765f,     -0.074342325f,  0.024912287f,  -0.008137583f,  0.0023017174f,
                                       -0.00065060804f, 0.00055725814f, 0.0002322316f, 0.000108190965f};
};

template <>
struct MathConstants<double> {
  static constexpr int kMantissaBits = 52, kExponentBias = 1023;
  static constexpr double kRounder = 0x1.8p52;
  static constexpr double kLog2E = 0x1.71547652b82fep0;
  static constexpr double kLn2High = 0x1.62e42fefa38p-1, kLn2Low = 0x1.ef35793c7673p-45;
  static constexpr double kExpOverflow = 710, kExpUnderflow = -746;
  static constexpr double kExpFlush = -0x1.6232bdd7abcd2p9;  // ln 2⁻¹⁰²²
  static constexpr double kExpm1[] = {0x1.0000000000009p-1,  0x1.5555555555558p-3,  0x1.55555555503ap-5,
                                      0x1.111111110f7efp-7,  0x1.6c16c18611db9p-10, 0x1.a01a01b015fc1p-13,
                                      0x1.a019938664e2bp-16, 0x1.71ddf69834cdap-19, 0x1.28b43b4f111dbp-22,
                                      0x1.af635f16ead2dp-26};
  static constexpr double kTanhOne = 20;
  static constexpr double kErfOne = 5.95, kErfMiddle = 3.5;
  static constexpr double kErfSmall[] = {0.12837916709551256,     -0.3761263890318352,    0.11283791670944186,
                                         -0.026866170643111652,   0.0052239776061199245,  -0.0008548325929380051,
                                         0.00012055293578739574,  -1.492471233506079e-05, 1.6447131952536898e-06,
                                         -1.6206316489635374e-07, 1.3710991461964517e-08, -7.779487864135419e-10};
  static constexpr double kErfTail[] = {0.15529365560718833,     -0.04132357783110156,    0.010661133346046346,
                                        -0.0026730738035298253,  0.0006526865383139987,   -0.0001554728721428364,
                                        3.6172283767516014e-05,  -8.243016253720536e-06,  1.8495188636185733e-06,
                                        -3.772539004795913e-07,  1.0111060798880242e-07,  -2.385120828548448e-08,
                                        -1.1621360022144877e-08, -1.1060012340001303e-08, -1.7535483128144824e-09,
                                        1.7504042086928847e-09,  1.6008628921792758e-09,  6.378626114153874e-10,
                                        1.4898675255854702e-10,  1.965793518604217e-11,   1.1866666982013977e-12};
};

// x = n·ln 2 + r. `rounded` holds n in its low bits.
template <class V>
struct ReducedExponent {
  V r, rounded;
};
template <class D, class V = hn::Vec<D>>
HWY_INLINE ReducedExponent<V> ReduceExponent(D d, V x, hn::TFromD<D> rounder) {
  using C = MathConstants<hn::TFromD<D>>;
  const V rounded = Fma(x, hn::Set(d, C::kLog2E), hn::Set(d, rounder));
  const V n = hn::Sub(rounded, hn::Set(d, rounder));
  const V r = Fma(n, hn::Set(d, -C::kLn2High), x);
  return {Fma(n, hn::Set(d, -C::kLn2Low), r), rounded};
}

// eʳ for |r| ≤ ln(2)/2
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpReduced(D d, V r) {
  using T = hn::TFromD<D>;
  const V one = hn::Set(d, T{1});
  return Fma(Fma(Polynomial(d, r, MathConstants<T>::kExpm1), r, one), r, one);
}

// 2ⁿ for −bias < n ≤ bias, where `rounded` was made with the rounder kRounder + kExponentBias.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V PowerOfTwo(D d, V rounded) {
  using C = MathConstants<hn::TFromD<D>>;
  const hn::RebindToUnsigned<D> bits;
  return hn::BitCast(d, hn::ShiftLeft<C::kMantissaBits>(hn::BitCast(bits, rounded)));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp(D d, V x) {
  using T = hn::TFromD<D>;
  using C = MathConstants<T>;
  const hn::RebindToSigned<D> integer;
  const auto [r, rounded] = ReduceExponent(d, x, C::kRounder);
  const V power = ExpReduced(d, r);
  // 2ⁿ in two factors, so that a result that is subnormal rounds once and one just below the largest does not
  // overflow.
  const auto n = hn::Sub(hn::BitCast(integer, rounded), hn::BitCast(integer, hn::Set(d, C::kRounder)));
  const auto half = hn::ShiftRight<1>(n);
  const auto bias = hn::Set(integer, C::kExponentBias);
  const V first = hn::BitCast(d, hn::ShiftLeft<C::kMantissaBits>(hn::Add(half, bias)));
  const V second = hn::BitCast(d, hn::ShiftLeft<C::kMantissaBits>(hn::Add(hn::Sub(n, half), bias)));
  V result = hn::Mul(hn::Mul(power, first), second);
  result = hn::IfThenElse(hn::Gt(x, hn::Set(d, C::kExpOverflow)), hn::Inf(d), result);
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, C::kExpUnderflow)), result);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpFlushed(D d, V x) {
  using T = hn::TFromD<D>;
  using C = MathConstants<T>;
  const auto [r, rounded] = ReduceExponent(d, x, C::kRounder + C::kExponentBias);
  const V power = ExpReduced(d, r);
  const V result = hn::Mul(power, PowerOfTwo(d, rounded));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, C::kExpFlush)), result);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Tanh(D d, V x) {
  using T = hn::TFromD<D>;
  using C = MathConstants<T>;
  const V largest = hn::Set(d, 2 * C::kTanhOne);
  V twice = hn::Abs(hn::Add(x, x));
  twice = hn::IfThenElse(hn::Gt(twice, largest), largest, twice);
  const auto [r, rounded] = ReduceExponent(d, twice, C::kRounder + C::kExponentBias);
  const V power = PowerOfTwo(d, rounded);
  const V minus_one = Fma(hn::Mul(r, r), Polynomial(d, r, C::kExpm1), r);
  const V m = Fma(power, minus_one, hn::Sub(power, hn::Set(d, T{1})));
  return hn::CopySign(hn::Div(m, hn::Add(m, hn::Set(d, T{2}))), x);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Erf(D d, V x) {
  using T = hn::TFromD<D>;
  using C = MathConstants<T>;
  const V one = hn::Set(d, T{1});
  const V largest = hn::Set(d, C::kErfOne);
  V size = hn::Abs(x);
  size = hn::IfThenElse(hn::Gt(size, largest), largest, size);
  const V square = hn::Mul(size, size);
  const V small = Fma(x, Polynomial(d, square, C::kErfSmall), x);
  const V scaled = Polynomial(d, hn::Sub(size, hn::Set(d, C::kErfMiddle)), C::kErfTail);
  const V tail = Fma(hn::Neg(ExpFlushed(d, hn::Neg(square))), scaled, one);
  return hn::IfThenElse(hn::Lt(size, one), small, hn::CopySign(tail, x));
}

}  // namespace HWY_NAMESPACE
}  // namespace heedful
HWY_AFTER_NAMESPACE();

#endif  // HEEDFUL_KERNELS_VECTOR_MATH_INL_H_
