#include "heedful/attention/kv_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>

#include "heedful/attention/attention_test_case.h"
#include "heedful/core/random.h"

namespace heedful {
namespace {

constexpr KvCacheShape kShape{.layers = 2, .B = 2, .G = 3, .capacity = 5, .D = 2, .E = 4};

// Numbers that name their place.
double mark(Index layer, Index b, Index g, Index position, Index column) {
  return static_cast<double>((((layer * 10 + b) * 10 + g) * 100 + position) * 10 + column);
}
Tensor<double, 4> rows(Index layer, Index begin, Index n, Index width, double sign) {
  Tensor<double, 4> x({kShape.B, kShape.G, n, width});
  for (Index b = 0; b < kShape.B; ++b) {
    for (Index g = 0; g < kShape.G; ++g) {
      for (Index i = 0; i < n; ++i) {
        for (Index c = 0; c < width; ++c) x(b, g, i, c) = sign * mark(layer, b, g, begin + i, c);
      }
    }
  }
  return x;
}
void append(KvCache<double>& cache, Index layer, Index begin, Index n) {
  cache.append(layer, begin, rows(layer, begin, n, kShape.D, 1), rows(layer, begin, n, kShape.E, -1));
}
void expect_contents(const KvCache<double>& cache, Index layer, Index length) {
  ASSERT_EQ(cache.length(layer), length);
  const Tensor<double, 4> keys = cache.keys(layer);
  const View<const double, 4> values = cache.values(layer);
  ASSERT_EQ(keys.extents(), (Extents<4>{kShape.B, kShape.G, length, kShape.D}));
  ASSERT_EQ(values.extents(), (Extents<4>{kShape.B, kShape.G, length, kShape.E}));
  for (Index b = 0; b < kShape.B; ++b) {
    for (Index g = 0; g < kShape.G; ++g) {
      for (Index p = 0; p < length; ++p) {
        for (Index d = 0; d < kShape.D; ++d) ASSERT_EQ(keys(b, g, p, d), mark(layer, b, g, p, d));
        for (Index e = 0; e < kShape.E; ++e) ASSERT_EQ(values(b, g, p, e), -mark(layer, b, g, p, e));
      }
    }
  }
}

TEST(KvCache, KeepsEveryLayerAtItsPositions) {
  KvCache<double> cache(kShape);
  append(cache, 0, 0, 3);
  expect_contents(cache, 0, 3);
  expect_contents(cache, 1, 0);
  append(cache, 1, 0, 3);
  append(cache, 0, 3, 1);
  append(cache, 1, 3, 1);
  append(cache, 0, 4, 1);
  expect_contents(cache, 0, 5);
  expect_contents(cache, 1, 4);
}

// Pieces that begin and end inside a panel of 16 keys, on its border, and that hold several.
TEST(KvCache, KeepsEveryKeyOfItsPanels) {
  KvCacheShape shape = kShape;
  shape.capacity = 71;
  KvCache<double> cache(shape);
  Index length = 0;
  for (const Index n : {7, 9, 1, 0, 38, 15, 1}) {
    for (const Index layer : {0, 1}) append(cache, layer, length, n);
    length += n;
    for (const Index layer : {0, 1}) expect_contents(cache, layer, length);
  }
  cache.truncate(21);
  expect_contents(cache, 0, 21);
  for (const Index layer : {0, 1}) append(cache, layer, 21, 50);
  expect_contents(cache, 0, 71);
  expect_contents(cache, 1, 71);
}

TEST(KvCache, TruncationIsExact) {
  KvCache<double> cache(kShape);
  append(cache, 0, 0, 5);
  append(cache, 1, 0, 5);
  cache.truncate(2);
  expect_contents(cache, 0, 2);
  expect_contents(cache, 1, 2);
  append(cache, 0, 2, 2);
  append(cache, 1, 2, 2);
  expect_contents(cache, 0, 4);
  cache.truncate(0);
  expect_contents(cache, 1, 0);
}

TEST(KvCache, RefusesWhatWouldScrambleIt) {
  KvCache<double> cache(kShape);
  append(cache, 0, 0, 3);
  using testing::HasSubstr;
  EXPECT_THAT(refused([&] { append(cache, 0, 2, 1); }),
              HasSubstr("position: expected 3, the first free one of layer 0, got 2"));
  EXPECT_THAT(refused([&] { append(cache, 0, 4, 1); }), HasSubstr("position: expected 3"));
  EXPECT_THAT(refused([&] { append(cache, 0, 3, 3); }),
              HasSubstr("capacity: expected at most 2 more positions in layer 0, got 3"));
  EXPECT_THAT(refused([&] { append(cache, 2, 0, 1); }), HasSubstr("layer: expected 0 to 1, got 2"));
  EXPECT_THAT(refused([&] { append(cache, -1, 0, 1); }), HasSubstr("layer: expected 0 to 1, got -1"));
  EXPECT_THAT(refused([&] { (void)cache.keys(2); }), HasSubstr("layer"));
  EXPECT_THAT(refused([&] { cache.append(0, 3, rows(0, 3, 1, 3, 1), rows(0, 3, 1, 4, 1)); }),
              HasSubstr("k: expected"));
  EXPECT_THAT(refused([&] { cache.append(0, 3, rows(0, 3, 1, 2, 1), rows(0, 3, 2, 4, 1)); }),
              HasSubstr("v: expected"));
  EXPECT_THAT(refused([&] { cache.truncate(1); }), HasSubstr("truncate: expected 0 to 0, got 1"))
      << "layer 1 is empty";
  EXPECT_THAT(refused([&] { cache.truncate(-1); }), HasSubstr("truncate"));
  EXPECT_THROW(KvCache<double>({.layers = 1, .B = 1, .G = 1, .capacity = -1, .D = 1, .E = 1}), Error);
  EXPECT_THROW(
      KvCache<double>({.layers = Index{1} << 40, .B = Index{1} << 40, .G = 1, .capacity = 1, .D = 1, .E = 1}), Error);
  expect_contents(cache, 0, 3);  // no refusal has left a trace
}

template <class T>
Tensor<T, 4> normals(Random& random, const Extents<4>& extents) {
  Tensor<T, 4> x(extents);
  for (T& each : x) each = static_cast<T>(random.normal());
  return x;
}
template <class T>
Tensor<T, 4> rounded(const Tensor<T, 4>& x) {
  Tensor<T, 4> y = x.copy();
  for (T& each : y) each = bfloat16_to_float(float_to_bfloat16(static_cast<float>(each)));
  return y;
}

// Attention on a cache has the bits of attention on the numbers in it (in bfloat16, on those they were rounded to),
// whichever way the work is cut (few queries on many threads, many queries, short sequences), for widths that fill no
// vector, and whatever forgotten positions have left behind the last one.
template <class T>
void expect_the_bits_of_its_numbers(CacheType type) {
  const Context one(1), many(16);
  Random random(5);
  for (const Index length : {1, 17, 300, 600, 3400}) {
    for (const Index width : {3, 16, 24}) {
      const Index B = 2, H = 4, G = 2;
      const Tensor<T, 4> k = normals<T>(random, {B, G, length, width}), v = normals<T>(random, {B, G, length, width});
      KvCache<T> cache({.layers = 1, .B = B, .G = G, .capacity = length + 20, .D = width, .E = width}, type);
      Tensor<T, 4> junk({B, G, length + 20, width});
      junk.fill(std::numeric_limits<T>::quiet_NaN());
      cache.append(0, 0, junk, junk);
      cache.truncate(0);
      cache.append(0, 0, k, v);
      const bool full = type == CacheType::full;
      const Tensor<T, 4> k_kept = full ? k.copy() : rounded(k), v_kept = full ? v.copy() : rounded(v);
      for (const Index queries : {Index{1}, std::min<Index>(length, 3), std::min<Index>(length, 600)}) {
        const Tensor<T, 4> q = normals<T>(random, {B, H, queries, width});
        AttentionInputs<T> lent{.q = q, .k = {}, .v = {}};
        cache.lend(lent, 0);
        for (const Context* context : {&one, &many}) {
          Tensor<T, 4> got({B, H, queries, width}), expected(got.extents());
          const AttentionOptions<T> options{.alignment = Alignment::bottom_right, .causal = true};
          attention_forward<T>(*context, {.out = got}, lent, options);
          attention_forward<T>(*context, {.out = expected}, {.q = q, .k = k_kept, .v = v_kept}, options);
          ASSERT_TRUE(std::equal(got.begin(), got.end(), expected.begin()))
              << length << " " << width << " " << queries;
        }
      }
    }
  }
}

TEST(KvCache, InFullChangesNoBit) {
  expect_the_bits_of_its_numbers<float>(CacheType::full);
  expect_the_bits_of_its_numbers<double>(CacheType::full);
}

TEST(KvCache, InBfloat16IsRoundedAndNoMore) {
  expect_the_bits_of_its_numbers<float>(CacheType::bf16);
  expect_the_bits_of_its_numbers<double>(CacheType::bf16);
}

TEST(KvCache, InBfloat16ServesTheForwardPassAlone) {
  KvCache<double> cache(kShape, CacheType::bf16);
  append(cache, 0, 0, 3);
  EXPECT_THAT(refused([&] { (void)cache.keys(0); }), testing::HasSubstr("expected a full cache"));
  const Tensor<double, 4> q({kShape.B, kShape.G, 3, kShape.D}), out({kShape.B, kShape.G, 3, kShape.E});
  const Tensor<double, 3> row({kShape.B, kShape.G, 3});
  Tensor<double, 4> dq(q.extents()), dk(q.extents()), dv(out.extents());
  AttentionInputs<double> inputs{.q = q, .k = {}, .v = {}};
  cache.lend(inputs, 0);
  EXPECT_THAT(refused([&] {
                attention_backward<double>(Context(), {.dq = dq, .dk = dk, .dv = dv}, out, inputs,
                                           {.out = out, .row_max = row, .row_sum = row}, {});
              }),
              testing::HasSubstr("key_panels: expected none; what a cache lends serves the forward pass alone"));
  inputs.k = q;
  Tensor<double, 4> result(out.extents());
  EXPECT_THAT(refused([&] { attention_forward<double>(Context(), {.out = result}, inputs, {}); }),
              testing::HasSubstr("k, v, key_panels: expected none beside key_panels_bf16 and v_bf16"));
}

}  // namespace
}  // namespace heedful
