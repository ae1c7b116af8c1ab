// Walking along a row with vectors, to be included in files that are compiled once a target. The last vector may be
// ragged; sums have the order of sum.h whatever the width of a vector, so bits are the same on every target.
//
//     EachPart(d, count, [&](auto part) HWY_ATTR { part.store(hn::Mul(part.load(x), by), y); });
//     const T total = SumParts(d, count, [&](auto part) HWY_ATTR { return part.load(x); });
#if defined(HEEDFUL_KERNELS_ROW_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEEDFUL_KERNELS_ROW_MATH_INL_H_
#undef HEEDFUL_KERNELS_ROW_MATH_INL_H_
#else
#define HEEDFUL_KERNELS_ROW_MATH_INL_H_
#endif

#include <limits>

#include "heedful/kernels/simd-inl.h"
#include "heedful/kernels/sum.h"

HWY_BEFORE_NAMESPACE();
namespace heedful {
namespace HWY_NAMESPACE {

// Elements [at, at + lanes) of a row. Rows of another type than D's have as many lanes.
template <class D>
struct WholePart {
  D d;
  Index at;

  template <class T>
  HWY_INLINE hn::Vec<hn::Rebind<T, D>> load(const T* row) const {
    return hn::LoadU(hn::Rebind<T, D>(), row + at);
  }
  template <class T>
  HWY_INLINE void store(hn::Vec<hn::Rebind<T, D>> v, T* row) const {
    hn::StoreU(v, hn::Rebind<T, D>(), row + at);
  }
  HWY_INLINE hn::Vec<D> or_zero(hn::Vec<D> v) const { return v; }
};

// Elements [at, at + count), fewer than a vector has lanes.
template <class D>
struct RaggedPart {
  D d;
  Index at, count;

  template <class T>
  HWY_INLINE hn::Vec<hn::Rebind<T, D>> load(const T* row) const {
    return LoadFirst(hn::Rebind<T, D>(), row + at, static_cast<size_t>(count));
  }
  template <class T>
  HWY_INLINE void store(hn::Vec<hn::Rebind<T, D>> v, T* row) const {
    StoreFirst(v, hn::Rebind<T, D>(), row + at, static_cast<size_t>(count));
  }
  HWY_INLINE hn::Vec<D> or_zero(hn::Vec<D> v) const {
    return hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(count)), v);
  }
};

template <class D, class Body>
HWY_INLINE void EachPart(D d, Index count, const Body& body) {
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  Index at = 0;
  for (; at + lanes <= count; at += lanes) body(WholePart<D>{d, at});
  if (at < count) body(RaggedPart<D>{d, at, count - at});
}

// Σ term(part), in the order of sum.h.
template <class D, class Term>
HWY_INLINE hn::TFromD<D> SumParts(D d, Index count, const Term& term) {
  using V = hn::Vec<D>;
  constexpr int kParts = static_cast<int>(internal::kSumLanes) / static_cast<int>(hn::MaxLanes(D()));
  constexpr Index kLanes = internal::kSumLanes / kParts;
  V sums[kParts];
  HWY_UNROLL(16)
  for (int p = 0; p < kParts; ++p) sums[p] = hn::Zero(d);
  Index at = 0;
  for (; at + internal::kSumLanes <= count; at += internal::kSumLanes) {
    HWY_UNROLL(16)
    for (int p = 0; p < kParts; ++p) sums[p] = hn::Add(sums[p], term(WholePart<D>{d, at + p * kLanes}));
  }
  HWY_UNROLL(16)
  for (int p = 0; p < kParts; ++p, at += kLanes) {
    if (at + kLanes <= count) {
      sums[p] = hn::Add(sums[p], term(WholePart<D>{d, at}));
    } else if (at < count) {
      const RaggedPart<D> part{d, at, count - at};
      sums[p] = hn::Add(sums[p], part.or_zero(term(part)));
    }
  }
  HWY_ALIGN hn::TFromD<D> lanes[internal::kSumLanes];
  HWY_UNROLL(16)
  for (int p = 0; p < kParts; ++p) hn::Store(sums[p], d, lanes + p * kLanes);
  return internal::sum_of_lanes(lanes);
}

// The largest element, −∞ of none. A NaN may be passed over: whoever needs it finds it in the sum.
template <class D>
HWY_INLINE hn::TFromD<D> Largest(D d, const hn::TFromD<D>* row, Index count) {
  using T = hn::TFromD<D>;
  constexpr T kLowest = -std::numeric_limits<T>::infinity();
  auto largest = hn::Set(d, kLowest);
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  Index at = 0;
  for (; at + lanes <= count; at += lanes) largest = hn::Max(hn::LoadU(d, row + at), largest);
  HWY_ALIGN T each[hn::MaxLanes(d)];
  hn::Store(largest, d, each);
  T result = kLowest;
  for (Index lane = 0; lane < lanes; ++lane) result = each[lane] > result ? each[lane] : result;
  for (; at < count; ++at) result = row[at] > result ? row[at] : result;
  return result;
}

}  // namespace HWY_NAMESPACE
}  // namespace heedful
HWY_AFTER_NAMESPACE();

#endif  // HEEDFUL_KERNELS_ROW_MATH_INL_H_
