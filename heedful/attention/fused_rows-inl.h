// What fused attention does to a row of scores of one chunk of keys: softcap, bias, ALiBi, mask, softmax. A row is a
// strip of kChunk elements; element n belongs to key chunk·kChunk + n, and 16 lanes carry its sum on every target.
#if defined(HEEDFUL_ATTENTION_FUSED_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEEDFUL_ATTENTION_FUSED_ROWS_INL_H_
#undef HEEDFUL_ATTENTION_FUSED_ROWS_INL_H_
#else
#define HEEDFUL_ATTENTION_FUSED_ROWS_INL_H_
#endif

#include <cstdint>
#include <cstring>
#include <limits>

#include "heedful/attention/fused_call.h"
#include "heedful/attention/fused_pack-inl.h"
#include "heedful/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heedful::HWY_NAMESPACE {

// The lanes of the vector at element n of a row that are visible.
template <class D>
HWY_INLINE hn::Mask<D> visible_lanes(D d, const ChunkBits& bits, Index n) {
  std::uint64_t word = bits[static_cast<std::size_t>(n / 64)] >> (n % 64);
  std::uint8_t bytes[8];
  std::memcpy(bytes, &word, sizeof(word));
  return hn::LoadMaskBits(d, bytes);
}

// x = softcap, bias and ALiBi of the scaled products of keys [begin, end) from `first_key` on, whole panels. Where
// `slopes` is given it takes d(capped)/d(raw).
template <class T>
void finish_scores(const FusedCall<T>& call, T* x, T* slopes, const QueryRow& row, Index b, Index first_key,
                   KeyRange keys) {
  const hn::ScalableTag<T> d;
  if (call.options.softcap > 0) {
    const auto cap = hn::Set(d, static_cast<T>(call.options.softcap)), one = hn::Set(d, T{1});
    for (Index n = keys.begin; n < keys.end; n += kLanes<T>) {
      const auto t = Tanh(d, hn::Div(hn::Load(d, x + n), cap));
      hn::Store(hn::Mul(cap, t), d, x + n);
      if (slopes != nullptr) hn::Store(hn::Mul(hn::Sub(one, t), hn::Add(one, t)), d, slopes + n);
    }
  }
  if (!call.bias.empty()) {
    const Index end = std::min(keys.end, call.shape.Tk - first_key);
    const T* bias = &call.bias(b, row.h, row.i, first_key);
    const Index step = call.bias.stride(3);
    for (Index n = keys.begin; n < end; ++n) x[n] += bias[n * step];
  }
  if (!call.options.alibi_slopes.empty()) {
    const auto slope = hn::Set(d, static_cast<T>(-call.options.alibi_slopes[row.h]));
    for (Index n = keys.begin; n < keys.end; n += kLanes<T>) {
      const auto from_first = hn::Set(d, static_cast<T>(first_key + n - call.mask.position(b, row.i)));
      const auto distance = hn::Abs(hn::Add(from_first, hn::Iota(d, T{0})));
      hn::Store(Fma(slope, distance, hn::Load(d, x + n)), d, x + n);
    }
  }
}

// x[0] = the first 2·kHalf vectors combined as a tree: n with n + kHalf, then the first half likewise.
template <int kHalf, class V, class Combine>
HWY_INLINE void combine_tree(V* x, const Combine& combine) {
  if constexpr (kHalf > 0) {
    HWY_UNROLL(16)
    for (int n = 0; n < kHalf; ++n) x[n] = combine(x[n], x[n + kHalf]);
    combine_tree<kHalf / 2>(x, combine);
  }
}

// Lane r of `result`, for r < rows: the 16 lanes of row r combined as a tree, lane n with lane n + 8, then n + 4,
// n + 2, n + 1. What is in the rows from `rows` on does not matter.
template <class T, class Combine>
HWY_INLINE void combine_lanes(T* result, const T (&lanes)[kPanel][kPanel], Index rows, const Combine& combine) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int kLanesOfVector = static_cast<int>(kLanes<T>), kParts = static_cast<int>(kPanel) / kLanesOfVector;
  for (Index r = 0; r < rows; r += kLanes<T>) {
    V of_rows[kLanesOfVector];
    HWY_UNROLL(16)
    for (int n = 0; n < kLanesOfVector; ++n) {
      V parts[kParts];
      HWY_UNROLL(16)
      for (int part = 0; part < kParts; ++part) parts[part] = hn::Load(d, lanes[r + n] + part * kLanesOfVector);
      combine_tree<kParts / 2>(parts, combine);  // so far the lanes of a row are those of different vectors
      of_rows[n] = parts[0];
    }
    transpose<T>(of_rows);
    combine_tree<kLanesOfVector / 2>(of_rows, combine);
    hn::Store(of_rows[0], d, result + r);
  }
}

// The rows of a strip, on the keys of whole panels [begin, end): x = exp(x − max[r]) where visible, 0 where hidden,
// with max[r] the row's largest visible score (−∞ where there is none) and sum[r] the sum. max and sum have 16
// elements. Without kMasked all keys are visible, and `bits` is not read.
template <bool kMasked, class T>
void softmax_strip(T* HWY_RESTRICT max, T* HWY_RESTRICT sum, T* HWY_RESTRICT x, Index rows, KeyRange keys,
                   const ChunkBits* bits) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int kParts = static_cast<int>(kPanel / kLanes<T>);  // vectors of a panel
  constexpr T kNone = -std::numeric_limits<T>::infinity();
  const V lowest = hn::Set(d, kNone);
  HWY_ALIGN T lanes[kPanel][kPanel];

  for (Index r = 0; r < rows; ++r) {
    V largest[kParts];
    HWY_UNROLL(16)
    for (int part = 0; part < kParts; ++part) largest[part] = lowest;
    for (Index n = keys.begin; n < keys.end; n += kPanel) {
      HWY_UNROLL(16)
      for (int part = 0; part < kParts; ++part) {
        T* at = x + r * kStripStride + n + part * kLanes<T>;
        V score = hn::Load(d, at);
        if constexpr (kMasked) {
          score = hn::IfThenElse(visible_lanes(d, bits[r], n + part * kLanes<T>), score, lowest);
          hn::Store(score, d, at);
        }
        largest[part] = hn::Max(score, largest[part]);  // passes a NaN over; the sum will have it
      }
    }
    HWY_UNROLL(16)
    for (int part = 0; part < kParts; ++part) hn::Store(largest[part], d, lanes[r] + part * kLanes<T>);
  }
  combine_lanes(max, lanes, rows, [](V a, V b) HWY_ATTR { return hn::Max(a, b); });

  for (Index r = 0; r < rows; ++r) {
    // Where every score is −∞ any finite number serves: all weights are 0.
    const V shift = hn::Set(d, max[r] == kNone ? T{0} : max[r]);
    V sums[kParts];
    HWY_UNROLL(16)
    for (int part = 0; part < kParts; ++part) sums[part] = hn::Zero(d);
    for (Index n = keys.begin; n < keys.end; n += kPanel) {
      HWY_UNROLL(16)
      for (int part = 0; part < kParts; ++part) {
        T* at = x + r * kStripStride + n + part * kLanes<T>;
        const V weight = ExpFlushed(d, hn::Sub(hn::Load(d, at), shift));
        hn::Store(weight, d, at);
        sums[part] = hn::Add(sums[part], weight);
      }
    }
    HWY_UNROLL(16)
    for (int part = 0; part < kParts; ++part) hn::Store(sums[part], d, lanes[r] + part * kLanes<T>);
  }
  combine_lanes(sum, lanes, rows, [](V a, V b) HWY_ATTR { return hn::Add(a, b); });
}

template <class T>
bool all_finite(const T* x, Index count) {
  const hn::ScalableTag<T> d;
  for (Index n = 0; n < count; n += kLanes<T>) {
    if (!hn::AllTrue(d, hn::IsFinite(hn::Load(d, x + n)))) return false;
  }
  return true;
}

// out = Σ_n weights[n]·values[n] over the visible n alone: what the tile gives, but for values that are not finite
// under a weight of 0.
template <class T>
void sum_visible_values(T* out, const T* weights, const T* values, Index stride, Index columns, KeyRange keys,
                        const ChunkBits& bits) {
  const hn::ScalableTag<T> d;
  for (Index c = 0; c < columns; c += kLanes<T>) {
    auto sum = hn::Zero(d);
    for (Index n = keys.begin; n < keys.end; ++n) {
      if (!is_visible(bits, n)) continue;
      sum = Fma(hn::Set(d, weights[n]), hn::LoadU(d, values + n * stride + c), sum);
    }
    hn::Store(sum, d, out + c);
  }
}

}  // namespace heedful::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEEDFUL_ATTENTION_FUSED_ROWS_INL_H_
