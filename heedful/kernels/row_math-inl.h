// Walking along a row with vectors, to be included in files that are compiled once a target. The last vector may be
// ragged; sums have the order of sum.h whatever the width of a vector, so bits are the same on every target.
//
//     EachPart(d, count, [&](auto part) HWY_ATTR { part.store(hn::Mul(part.load(x), by), y); });
//     const T total = SumParts(d, count, [&](auto part) HWY_ATTR { return part.load(x); });
//     SumColumns<1>(d, rows, 0, count, …): a sum down each column
#if defined(HEEDFUL_KERNELS_ROW_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEEDFUL_KERNELS_ROW_MATH_INL_H_
#undef HEEDFUL_KERNELS_ROW_MATH_INL_H_
#else
#define HEEDFUL_KERNELS_ROW_MATH_INL_H_
#endif

#include <limits>
#include <type_traits>

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

// The tree of sum.h: lane n with lane n + half, first those of different vectors, then those of one.
template <int kCount, class V>
HWY_INLINE V TreeOfVectors(V* x) {
  if constexpr (kCount > 1) {
    HWY_UNROLL(16)
    for (int p = 0; p < kCount / 2; ++p) x[p] = hn::Add(x[p], x[p + kCount / 2]);
    return TreeOfVectors<kCount / 2>(x);
  } else {
    return x[0];
  }
}
template <class D>
HWY_INLINE hn::TFromD<D> TreeOfLanes(D d, hn::Vec<D> x) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (hn::MaxLanes(D()) > 1) {
    const hn::Half<D> half;
    return TreeOfLanes(half, hn::Add(hn::LowerHalf(half, x), hn::UpperHalf(half, x)));
  }
#endif
  (void)d;
  return hn::GetLane(x);
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
  return TreeOfLanes(d, TreeOfVectors<kParts>(sums));
}

// to(part, sums) for each vector of columns, where sums[k] has taken what add(n, part, sums) added to it for each row
// n, in ascending order. The running sums of several vectors at once stay in registers while the rows go by.
template <int kSums, int kVectors = 4, class D, class Add, class To>
HWY_INLINE void SumColumns(D d, Index rows, Index from, Index columns, const Add& add, const To& to) {
  using V = hn::Vec<D>;
  const Index lanes = static_cast<Index>(hn::Lanes(d));
  const auto together = [&]<int kCount>(std::integral_constant<int, kCount>, auto part_at) HWY_ATTR {
    V sums[kCount][kSums];
    HWY_UNROLL(16)
    for (int v = 0; v < kCount; ++v) {
      HWY_UNROLL(16)
      for (int k = 0; k < kSums; ++k) sums[v][k] = hn::Zero(d);
    }
    for (Index n = 0; n < rows; ++n) {
      HWY_UNROLL(16)
      for (int v = 0; v < kCount; ++v) add(n, part_at(v), sums[v]);
    }
    HWY_UNROLL(16)
    for (int v = 0; v < kCount; ++v) to(part_at(v), sums[v]);
  };
  for (; from + kVectors * lanes <= columns; from += kVectors * lanes) {
    together(std::integral_constant<int, kVectors>(), [&](int v) { return WholePart<D>{d, from + v * lanes}; });
  }
  if constexpr (kVectors > 1) {
    SumColumns<kSums, kVectors / 2>(d, rows, from, columns, add, to);
  } else if (from < columns) {
    together(std::integral_constant<int, 1>(), [&](int) { return RaggedPart<D>{d, from, columns - from}; });
  }
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
