// The recorded ONNX cases of Attention and RotaryEmbedding. What the operator says in attributes and optional inputs
// is put into the words of attention.h:
//     is_causal with past keys                        positions start at the length of the past
//     is_causal with nonpad_kv_seqlen                 positions start at nonpad[b] − Tq
//     is_causal with neither                          top left
//     a mask with fewer columns than keys             the rest is hidden
//     a row that sees nothing                         gives 0
// and qk_matmul_output, by mode: 0 the raw scores, 1 after the softcap, 2 after bias and mask, 3 the weights.
#include <gtest/gtest.h>

#include <optional>

#include "heedful/attention/attention_error_bound.h"
#include "heedful/attention/attention_test_case.h"
#include "heedful/attention/kv_cache.h"
#include "heedful/attention/rotary.h"
#include "heedful/formats/golden_case.h"

namespace heedful {
namespace {

// [B, T, heads·W] or [B, heads, T, W] as the latter.
Tensor<float, 4> heads_first(const Array& array, Index heads, std::string_view name) {
  if (array.shape.size() == 4) return to_tensor<float, 4>(array, name);
  const auto merged = to_tensor<float, 3>(array, name);
  const Index B = merged.extent(0), T = merged.extent(1), W = merged.extent(2) / heads;
  Tensor<float, 4> result({B, heads, T, W});
  for (Index b = 0; b < B; ++b) {
    for (Index h = 0; h < heads; ++h) {
      for (Index t = 0; t < T; ++t) {
        for (Index w = 0; w < W; ++w) result(b, h, t, w) = merged(b, t, h * W + w);
      }
    }
  }
  return result;
}

// A mask of rank 2 to 4 with at most `keys` columns as rank 4 with `keys`, the missing ones filled.
template <class T>
Tensor<T, 4> full_mask(const Array& array, const AttentionShape& shape, T filling) {
  Array lifted = array;
  while (lifted.shape.size() < 4) lifted.shape.insert(lifted.shape.begin(), 1);
  const auto given = to_tensor<T, 4>(lifted, "attn_mask");
  Tensor<T, 4> mask({given.extent(0), given.extent(1), shape.Tq, shape.Tk});
  mask.fill(filling);
  for (Index b = 0; b < mask.extent(0); ++b) {
    for (Index h = 0; h < mask.extent(1); ++h) {
      for (Index i = 0; i < shape.Tq; ++i) {
        for (Index j = 0; j < given.extent(3); ++j) {
          mask(b, h, i, j) = given(b, h, given.extent(2) == 1 ? 0 : i, j);
        }
      }
    }
  }
  return mask;
}

struct Problem {
  AttentionCase<float> attention;
  std::optional<KvCache<float>> cache;  // past and present, where the case has a past
};

Problem read(const GoldenCase& golden) {
  Problem problem;
  AttentionCase<float>& c = problem.attention;
  c.description = golden.name;
  const Array &q = at(golden.inputs, "Q"), &k = at(golden.inputs, "K"), &v = at(golden.inputs, "V");
  const Index kv_heads = golden.attribute("kv_num_heads", Index{0});
  c.q = heads_first(q, golden.attribute("q_num_heads", Index{0}), "Q");
  c.k = heads_first(k, kv_heads, "K");
  c.v = heads_first(v, kv_heads, "V");
  c.shape = {.B = c.q.extent(0),
             .Tq = c.q.extent(2),
             .Tk = c.k.extent(2),
             .H = c.q.extent(1),
             .G = c.k.extent(1),
             .D = c.q.extent(3),
             .E = c.v.extent(3)};
  AttentionShape& s = c.shape;
  Index past = 0;
  if (const Array* past_key = golden.input(4)) {
    past = past_key->shape[2];
    s.Tk += past;
    KvCache<float>& cache =
        problem.cache.emplace(KvCacheShape{.layers = 1, .B = s.B, .G = s.G, .capacity = s.Tk, .D = s.D, .E = s.E});
    cache.append(0, 0, to_tensor<float, 4>(*past_key, "past_key"),
                 to_tensor<float, 4>(*golden.input(5), "past_value"));
    cache.append(0, past, c.k, c.v);
    const View<const float, 4> values = cache.values(0);
    c.k = cache.keys(0), c.v = Tensor<float, 4>(values.extents());
    for (Index b = 0; b < s.B; ++b) {
      for (Index g = 0; g < s.G; ++g) {
        for (Index t = 0; t < s.Tk; ++t) {
          for (Index e = 0; e < s.E; ++e) c.v(b, g, t, e) = values(b, g, t, e);
        }
      }
    }
  }
  AttentionOptions<float>& o = c.settings;
  if (golden.attributes.contains("scale")) o.scale = golden.attribute("scale", 0.0);
  o.softcap = golden.attribute("softcap", 0.0);
  o.causal = golden.attribute("is_causal", 0) == 1;
  o.alignment = Alignment::offsets;
  o.empty_row = EmptyRow::zero;
  c.query_offsets = Tensor<Index, 1>({s.B});
  c.query_offsets.fill(past);
  if (const Array* lengths = golden.input(6)) {
    c.key_lengths = to_tensor<Index, 1>(*lengths, "nonpad_kv_seqlen");
    for (Index b = 0; b < s.B; ++b) c.query_offsets(b) = c.key_lengths(b) - s.Tq;
  }
  if (const Array* mask = golden.input(3)) {
    if (mask->type == DataType::boolean) {
      c.keep = full_mask<bool>(*mask, s, false);
    } else {
      c.bias = full_mask<float>(*mask, s, -std::numeric_limits<float>::infinity());
    }
  }
  c.dout = Tensor<float, 4>({s.B, s.H, s.Tq, s.E});
  return problem;
}

// The recorded numbers and ours are each as far from the exact ones as rounding allows: recorded within `bound` of the
// reference where they were computed in float, 2^13 times that in half precision, whose u is 2^13 times larger.
void expect_close(const Tensor<float, 4>& recorded, const Tensor<float, 4>& ours, const Tensor<double, 4>& reference,
                  const Tensor<double, 4>& bound, double recorded_rounding, const char* name) {
  ASSERT_EQ(recorded.extents(), ours.extents()) << name;
  for (Index n = 0; n < recorded.size(); ++n) {
    const double expected = reference.data()[n];
    if (static_cast<double>(recorded.data()[n]) != expected) {
      EXPECT_NEAR(recorded.data()[n], expected, recorded_rounding * bound.data()[n]) << name << " " << n;
    }
    if (static_cast<double>(ours.data()[n]) != expected) {
      EXPECT_NEAR(ours.data()[n], expected, bound.data()[n]) << name << " " << n;
    }
  }
}

TEST(Goldens, Attention) {
  const auto paths = golden_cases("Attention");
  if (paths.empty()) GTEST_SKIP() << "the recorded cases are absent";
  int checked = 0;
  for (const auto& path : paths) {
    const GoldenCase golden = load_golden_case(path);
    SCOPED_TRACE(golden.name);
    Problem problem = read(golden);
    AttentionCase<float>& c = problem.attention;
    const double recorded_rounding = at(golden.inputs, "Q").type == DataType::f16 ? 0x1p13 : 1;
    const AttentionResults<double> reference = run_reference(c), bounds = rounding_bounds(c, reference);
    const AttentionResults<float> results = run_attention(c);
    const Tensor<float, 4> y = heads_first(*golden.output(0), c.shape.H, "Y");
    expect_close(y, results.out, reference.out, bounds.out, recorded_rounding, "Y");

    if (problem.cache) {
      EXPECT_TRUE(same_bits(c.k, to_tensor<float, 4>(*golden.output(1), "present_key")));
      EXPECT_TRUE(same_bits(c.v, to_tensor<float, 4>(*golden.output(2), "present_value")));
    }
    if (const Array* recorded = golden.output(3)) {
      const auto scores = to_tensor<float, 4>(*recorded, "qk_matmul_output");
      const int mode = golden.attribute("qk_matmul_output_mode", 0);
      if (mode == 3) {
        expect_close(scores, results.weights, reference.weights, bounds.weights, recorded_rounding, "weights");
      } else {
        if (mode < 2) c.bias = {}, c.keep = {}, c.settings.causal = false;
        if (mode < 1) c.settings.softcap = 0;
        const AttentionResults<double> exact = run_reference(c), exact_bounds = rounding_bounds(c, exact);
        expect_close(scores, run_attention(c).scores, exact.scores, exact_bounds.scores, recorded_rounding, "scores");
      }
    }
    ++checked;
  }
  std::cout << checked << " of " << paths.size() << " cases checked, none left out\n";
}

TEST(Goldens, RotaryEmbedding) {
  const auto paths = golden_cases("RotaryEmbedding");
  if (paths.empty()) GTEST_SKIP() << "the recorded cases are absent";
  for (const auto& path : paths) {
    const GoldenCase golden = load_golden_case(path);
    SCOPED_TRACE(golden.name);
    const Index heads = golden.attribute("num_heads", Index{0});
    const Tensor<float, 4> x = heads_first(at(golden.inputs, "input"), heads, "input");
    const Tensor<float, 4> expected = heads_first(at(golden.outputs, "output"), heads, "output");
    const Index B = x.extent(0), T = x.extent(2);
    // Without position_ids the caches are [B, T, R/2], one row for every token: positions count through them.
    const auto table = [&golden](const char* name) {
      Array flat = at(golden.inputs, name);
      if (flat.shape.size() == 3) flat.shape = {flat.shape[0] * flat.shape[1], flat.shape[2]};
      return to_tensor<float, 2>(flat, name);
    };
    const Tensor<float, 2> cos = table("cos_cache"), sin = table("sin_cache");
    Tensor<Index, 2> positions({B, T});
    if (const Array* ids = golden.input(3)) {
      positions = to_tensor<Index, 2>(*ids, "position_ids");
    } else {
      for (Index n = 0; n < B * T; ++n) positions.data()[n] = n;
    }
    const RotaryLayout layout =
        golden.attribute("interleaved", 0) == 1 ? RotaryLayout::interleaved : RotaryLayout::half_split;
    Tensor<float, 4> y(x.extents());
    rotary_forward<float>(y, x, positions, {.cos = cos, .sin = sin}, layout);
    for (Index n = 0; n < y.size(); ++n) {
      // Two products and a sum of numbers below 2, each rounded on both sides.
      EXPECT_NEAR(y.data()[n], expected.data()[n], 6 * 2 * 0x1p-24) << n;
    }
  }
  std::cout << paths.size() << " cases checked, none left out\n";
}

}  // namespace
}  // namespace heedful
