// What every vector kernel stands on, compiled once a target: a multiply-add that is fused everywhere.
// Its bits are the same on every target.
#if defined(HEEDFUL_KERNELS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEEDFUL_KERNELS_SIMD_INL_H_
#undef HEEDFUL_KERNELS_SIMD_INL_H_
#else
#define HEEDFUL_KERNELS_SIMD_INL_H_
#endif

#include <cmath>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heedful {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// a·b + c, rounded once. A target without the instruction asks the C library lane by lane: slow, and exact.
template <class V>
HWY_INLINE V Fma(V a, V b, V c) {
#if HWY_NATIVE_FMA
  return hn::MulAdd(a, b, c);
#else
  using D = hn::DFromV<V>;
  using T = hn::TFromD<D>;
  const D d;
  HWY_ALIGN T x[hn::MaxLanes(d)], y[hn::MaxLanes(d)], z[hn::MaxLanes(d)];
  hn::Store(a, d, x);
  hn::Store(b, d, y);
  hn::Store(c, d, z);
  for (size_t lane = 0; lane < hn::Lanes(d); ++lane) z[lane] = std::fma(x[lane], y[lane], z[lane]);
  return hn::Load(d, z);
#endif
}

// The first `count` elements at `from`, which is all that is read, and zeros.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V LoadFirst(D d, const hn::TFromD<D>* from, size_t count) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return hn::MaskedLoad(hn::FirstN(d, count), d, from);
#else
  HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(d)] = {};
  for (size_t lane = 0; lane < count; ++lane) lanes[lane] = from[lane];
  return hn::Load(d, lanes);
#endif
}

// Writes the first `count` lanes to `to` and nothing behind them.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void StoreFirst(V v, D d, hn::TFromD<D>* to, size_t count) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  hn::BlendedStore(v, hn::FirstN(d, count), d, to);
#else
  HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(d)];
  hn::Store(v, d, lanes);
  for (size_t lane = 0; lane < count; ++lane) to[lane] = lanes[lane];
#endif
}

// c[0] + c[1]·x + … + c[N−1]·x^(N−1), by Horner's rule.
template <size_t From = 0, class D, size_t N, class V = hn::Vec<D>>
HWY_INLINE V Polynomial(D d, V x, const hn::TFromD<D> (&c)[N]) {
  if constexpr (From + 1 == N) {
    return hn::Set(d, c[From]);
  } else {
    return Fma(Polynomial<From + 1>(d, x, c), x, hn::Set(d, c[From]));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heedful
HWY_AFTER_NAMESPACE();

#endif  // HEEDFUL_KERNELS_SIMD_INL_H_
