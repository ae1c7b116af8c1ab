// The normal distribution on vectors, to be included in files that are compiled once a target; the bits are the same on
// all.
//
//     Φ(−a) = exp(−a²/2)·q(v)/(a + 4),  v = (4 − c·a)/(a + 4) in [−1, 1],        a = |x|
//
// q is a minimax fit (Remez, relative) of (a + 4)·exp(a²/2)·Φ(−a), its coefficients rounded to the type: 3e-8 off in
// float, 1.3e-16 in double. a² is split by a fused multiply-add, so that the exponential sees all of it. So the tail
// keeps its relative accuracy as far as exp does; it is 0 from where exp is, a = 13.2 in float and 37.6 in double.
#if defined(HEEDFUL_KERNELS_NORMAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEEDFUL_KERNELS_NORMAL_INL_H_
#undef HEEDFUL_KERNELS_NORMAL_INL_H_
#else
#define HEEDFUL_KERNELS_NORMAL_INL_H_
#endif

#include "heedful/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heedful {
namespace HWY_NAMESPACE {

template <class T>
struct NormalConstants;

template <>
struct NormalConstants<float> {
  static constexpr float kSlope = 1.59375f, kFar = 13.47f;
  static constexpr float kTail[] = {0.91713661f,     0.630322635f,    0.318072498f,    0.112228021f,
                                    0.0232054517f,   0.000309812196f, -0.00118394732f, -0.000159780277f,
                                    5.64776892e-05f, 1.22088622e-05f};
};

template <>
struct NormalConstants<double> {
  static constexpr double kSlope = 1.2109375, kFar = 37.9;
  static constexpr double kTail[] = {
      0.816973246833281,      0.6215223245106113,      0.3632247985749965,      0.1555882200221373,
      0.042499259609019235,   0.0031772312028262957,   -0.002475603890229237,   -0.0007209047540832139,
      0.00014618640879918369, 8.604647426058367e-05,   -1.3562230913643206e-05, -1.0097858998980916e-05,
      2.1562204727367445e-06, 1.1574994219654988e-06,  -4.2427637196779825e-07, -1.0730051071208858e-07,
      8.094207075820995e-08,  2.4279910735616913e-09,  -1.3342738632993618e-08, 1.62031050514483e-09,
      1.700716475800676e-09,  -2.6499302430123883e-10, -1.28075557997584e-10};
};

template <class V>
struct NormalTail {
  V tail;   // Φ(−|x|)
  V power;  // exp(−x²/2)
};

template <class D, class V = hn::Vec<D>>
HWY_INLINE NormalTail<V> Normal(D d, V x) {
  using T = hn::TFromD<D>;
  using C = NormalConstants<T>;
  const V four = hn::Set(d, T{4}), half = hn::Set(d, T{0.5});
  const V size = hn::Abs(x), far = hn::Set(d, C::kFar);
  const V a = hn::IfThenElse(hn::Gt(size, far), far, size);  // a NaN stays one
  const V inverse = hn::Div(hn::Set(d, T{1}), hn::Add(a, four));
  const V v = hn::Mul(Fma(a, hn::Set(d, -C::kSlope), four), inverse);
  const V square = hn::Mul(a, a);
  const V rest = Fma(a, a, hn::Neg(square));
  const V rounded = ExpFlushed(d, hn::Neg(hn::Mul(square, half)));
  const V power = Fma(hn::Mul(rounded, hn::Neg(half)), rest, rounded);
  return {hn::Mul(hn::Mul(power, inverse), Polynomial(d, v, C::kTail)), power};
}

}  // namespace HWY_NAMESPACE
}  // namespace heedful
HWY_AFTER_NAMESPACE();

#endif  // HEEDFUL_KERNELS_NORMAL_INL_H_
