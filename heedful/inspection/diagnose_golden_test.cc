// The recorded Attention operator cases, as correct implementations by others: none may raise an alarm.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "heedful/formats/golden_case.h"
#include "heedful/inspection/diagnose.h"

namespace heedful {
namespace {

// [B, H, T, D] from itself or from [B, T, H·D].
Tensor<double, 4> heads_first(const Array& array, Index heads) {
  if (array.shape.size() == 4) return to_tensor<double, 4>(array, "golden");
  const Tensor<double, 3> x = to_tensor<double, 3>(array, "golden");
  const Index width = x.extent(2) / heads;
  Tensor<double, 4> result({x.extent(0), heads, x.extent(1), width});
  for (Index b = 0; b < x.extent(0); ++b) {
    for (Index h = 0; h < heads; ++h) {
      for (Index t = 0; t < x.extent(1); ++t) {
        for (Index d = 0; d < width; ++d) result(b, h, t, d) = x(b, t, h * width + d);
      }
    }
  }
  return result;
}

// past, then x, along the keys.
Tensor<double, 4> joined(const Tensor<double, 4>& past, const Tensor<double, 4>& x) {
  Tensor<double, 4> result({x.extent(0), x.extent(1), past.extent(2) + x.extent(2), x.extent(3)});
  for (Index b = 0; b < x.extent(0); ++b) {
    for (Index g = 0; g < x.extent(1); ++g) {
      std::copy_n(&past(b, g, 0, 0), past.extent(2) * x.extent(3), &result(b, g, 0, 0));
      std::copy_n(&x(b, g, 0, 0), x.extent(2) * x.extent(3), &result(b, g, past.extent(2), 0));
    }
  }
  return result;
}

// A mask of any rank up to 4, padded on the key axis with what hides.
template <class T>
Tensor<T, 4> mask_of(const Array& array, Index Tq, Index Tk, T hides) {
  Array wide = array;
  while (wide.shape.size() < 4) wide.shape.insert(wide.shape.begin(), 1);
  const Tensor<T, 4> x = to_tensor<T, 4>(wide, "mask");
  Tensor<T, 4> result({x.extent(0), x.extent(1), Tq, Tk});
  result.fill(hides);
  for (Index b = 0; b < x.extent(0); ++b) {
    for (Index h = 0; h < x.extent(1); ++h) {
      for (Index i = 0; i < Tq; ++i) {
        for (Index j = 0; j < x.extent(3); ++j) result(b, h, i, j) = x(b, h, x.extent(2) == 1 ? 0 : i, j);
      }
    }
  }
  return result;
}

AttentionCase case_of(const GoldenCase& golden) {
  AttentionCase c;
  c.name = golden.name;
  const Index H = golden.attribute("q_num_heads", Index{0}), G = golden.attribute("kv_num_heads", Index{0});
  c.q = heads_first(*golden.input(0), H);
  c.k = heads_first(*golden.input(1), G);
  c.v = heads_first(*golden.input(2), G);
  const bool has_past = golden.input(4) != nullptr;
  if (has_past) {
    c.k = joined(to_tensor<double, 4>(*golden.input(4), "past_key"), c.k);
    c.v = joined(to_tensor<double, 4>(*golden.input(5), "past_value"), c.v);
  }
  DeclaredAttention& d = c.declared;
  d.type = golden.output(0)->type;
  if (golden.attributes.contains("scale")) d.scale = golden.attribute("scale", 0.0);
  d.softcap = golden.attribute("softcap", 0.0);
  d.causal = golden.attribute("is_causal", 0) != 0;
  d.alignment = has_past ? Alignment::offsets : Alignment::top_left;
  if (has_past) d.query_offsets.assign(static_cast<std::size_t>(c.B()), golden.input(4)->shape[2]);
  if (const Array* mask = golden.input(3)) {
    if (mask->type == DataType::boolean) {
      c.keep = mask_of<bool>(*mask, c.Tq(), c.Tk(), false);
    } else {
      c.bias = mask_of<double>(*mask, c.Tq(), c.Tk(), -std::numeric_limits<double>::infinity());
    }
  }
  if (const Array* lengths = golden.input(6)) {
    d.key_lengths = to_vector<Index>(*lengths, "nonpad_kv_seqlen");
    d.alignment = Alignment::offsets;
    d.query_offsets.clear();
    for (const Index length : d.key_lengths) d.query_offsets.push_back(length - c.Tq());
  }
  return c;
}

TEST(DiagnoseGoldens, NoFalseAlarmOnTheRecordedCases) {
  const std::vector<std::filesystem::path> paths = golden_cases("Attention");
  if (paths.empty()) GTEST_SKIP() << "no recorded operator cases beside this checkout";
  const Context context(2);
  DiagnoseOptions options;
  options.pairs = options.counterexample = false;
  for (const std::filesystem::path& path : paths) {
    const GoldenCase golden = load_golden_case(path);
    std::vector<Observation> observations;
    observations.push_back({case_of(golden), {}});
    Observation& one = observations.front();
    one.answer.out = heads_first(*golden.output(0), golden.attribute("q_num_heads", Index{0}));
    const Diagnosis d = diagnose(context, observations, options);
    EXPECT_TRUE(d.is_correct()) << golden.name << ": " << name(d.verdict) << ", residual " << d.correct.residual;
  }
}

}  // namespace
}  // namespace heedful
