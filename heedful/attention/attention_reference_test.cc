// The reference is the oracle of every other path, so it is checked against things that share nothing with it: a
// plain formula on dual numbers with its own reading of the mask, central differences, and NumPy.
#include "heedful/attention/attention_reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <vector>

#include "heedful/attention/attention_test_case.h"
#include "heedful/core/dual.h"
#include "heedful/core/error.h"
#include "heedful/formats/npz.h"

namespace heedful {
namespace {

constexpr double kRounding = std::numeric_limits<double>::epsilon() / 2;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Whether query (b, h, i) sees key j, read straight off the comments of AttentionOptions.
bool sees(const AttentionCase<double>& c, Index b, Index h, Index i, Index j) {
  const auto& s = c.shape;
  Index p = i;
  if (c.settings.alignment == Alignment::bottom_right) p = i + s.Tk - s.Tq;
  if (c.settings.alignment == Alignment::offsets) p = i + c.query_offsets(b);
  if (c.settings.causal && j > p) return false;
  if (c.settings.window > 0 && std::abs(p - j) >= c.settings.window) return false;
  if (c.key_lengths.size() > 0 && j >= c.key_lengths(b)) return false;
  if (c.key_documents.size() > 0 && c.query_documents(b, i) != c.key_documents(b, j)) return false;
  if (c.keep.size() > 0 && !c.keep(b % c.keep.extent(0), h % c.keep.extent(1), i, j)) return false;
  return c.bias.size() == 0 || c.bias(b % c.bias.extent(0), h % c.bias.extent(1), i, j) != -kInfinity;
}

// The directions in which q, k, v and the bias move.
struct Direction {
  Tensor<double, 4> q, k, v, bias;
};

// out and its derivative along `direction`, from the formula on dual numbers.
Tensor<Dual, 4> dual_attention(const AttentionCase<double>& c, const Direction& direction) {
  const auto& s = c.shape;
  Tensor<Dual, 4> out({s.B, s.H, s.Tq, s.E});
  const double scale = c.settings.scale.value_or(1 / std::sqrt(static_cast<double>(s.D)));
  for (Index b = 0; b < s.B; ++b) {
    for (Index h = 0; h < s.H; ++h) {
      for (Index i = 0; i < s.Tq; ++i) {
        const Index g = h * s.G / s.H;
        const Index p = i + (c.settings.alignment == Alignment::bottom_right ? s.Tk - s.Tq
                             : c.settings.alignment == Alignment::offsets    ? c.query_offsets(b)
                                                                             : 0);
        std::vector<Dual> weights(static_cast<std::size_t>(s.Tk));
        Dual total;
        double largest = -kInfinity;
        for (const bool second_time : {false, true}) {
          for (Index j = 0; j < s.Tk; ++j) {
            if (!sees(c, b, h, i, j)) continue;
            Dual score;
            for (Index d = 0; d < s.D; ++d) {
              score = score +
                      Dual{c.q(b, h, i, d), direction.q(b, h, i, d)} * Dual{c.k(b, g, j, d), direction.k(b, g, j, d)};
            }
            score = score * Dual{scale, 0};
            if (const double cap = c.settings.softcap; cap > 0) score = tanh(score / Dual{cap, 0}) * Dual{cap, 0};
            if (c.bias.size() > 0) {
              const Index bb = b % c.bias.extent(0), hh = h % c.bias.extent(1);
              score = score + Dual{c.bias(bb, hh, i, j), direction.bias(bb, hh, i, j)};
            }
            if (c.alibi_slopes.size() > 0) {
              score = score - Dual{c.alibi_slopes(h) * static_cast<double>(std::abs(p - j)), 0};
            }
            largest = std::max(largest, score.value);
            if (second_time) total = total + (weights[static_cast<std::size_t>(j)] = exp(score - Dual{largest, 0}));
          }
        }
        for (Index j = 0; j < s.Tk; ++j) {
          if (!sees(c, b, h, i, j)) continue;
          const Dual weight = weights[static_cast<std::size_t>(j)] / total;
          for (Index e = 0; e < s.E; ++e) {
            out(b, h, i, e) = out(b, h, i, e) + weight * Dual{c.v(b, g, j, e), direction.v(b, g, j, e)};
          }
        }
      }
    }
  }
  return out;
}

struct Feature {
  const char* name;
  std::function<void(CaseFeatures&)> enable;
};
const Feature kFeatures[] = {
    {"plain", [](CaseFeatures&) {}},
    {"scale", [](CaseFeatures& f) { f.scale = true; }},
    {"softcap", [](CaseFeatures& f) { f.softcap = true; }},
    {"bias", [](CaseFeatures& f) { f.bias = true; }},
    {"alibi", [](CaseFeatures& f) { f.alibi = f.alignment = true; }},
    {"causal", [](CaseFeatures& f) { f.causal = f.alignment = true; }},
    {"window", [](CaseFeatures& f) { f.window = f.alignment = true; }},
    {"keep", [](CaseFeatures& f) { f.keep = true; }},
    {"key_lengths", [](CaseFeatures& f) { f.key_lengths = true; }},
    {"documents", [](CaseFeatures& f) { f.documents = true; }},
    {"degenerate_keys", [](CaseFeatures& f) { f.degenerate_keys = true; }},
    {"all", [](CaseFeatures& f) { f = {.large_scores = false}; }},
};

class ReferenceFeature : public testing::TestWithParam<Feature> {
 protected:
  // Calls check on 40 random problems with the feature in about half of them.
  void for_cases(Index max_length, Index max_width,
                 const std::function<void(AttentionCase<double>&, Random&)>& check) {
    CaseFeatures features = CaseFeatures::none();
    GetParam().enable(features);
    features.max_length = max_length;
    features.max_width = max_width;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      Random random(seed);
      AttentionCase<double> c = random_case<double>(random, features);
      SCOPED_TRACE(fmt::format("seed {}: {}", seed, c.description));
      check(c, random);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(, ReferenceFeature, testing::ValuesIn(kFeatures),
                         [](const auto& param) { return std::string(param.param.name); });

double sum_of_products(const Tensor<double, 4>& a, const Tensor<double, 4>& b) {
  double sum = 0;
  for (Index n = 0; n < a.size(); ++n) sum += a.data()[n] * b.data()[n];
  return sum;
}
double sum_of_magnitudes(const Tensor<double, 4>& a, const Tensor<double, 4>& b) {
  double sum = 0;
  for (Index n = 0; n < a.size(); ++n) sum += std::abs(a.data()[n] * b.data()[n]);
  return sum;
}

// ⟨J·u, dout⟩ = ⟨u, Jᵀ·dout⟩ in every direction u: the left side comes from dual numbers, the right side from the
// backward pass, and no step size stands between them.
TEST_P(ReferenceFeature, BackwardIsTheTransposeOfTheDerivative) {
  for_cases(9, 7, [](AttentionCase<double>& c, Random& random) {
    Direction u{Tensor<double, 4>(c.q.extents()), Tensor<double, 4>(c.k.extents()), Tensor<double, 4>(c.v.extents()),
                Tensor<double, 4>(c.bias.extents())};
    fill_normal(random, u.q), fill_normal(random, u.k), fill_normal(random, u.v), fill_normal(random, u.bias);
    const Tensor<Dual, 4> dual = dual_attention(c, u);
    const AttentionResults<double> results = run_reference(c);
    double forward = 0, size = 0;
    for (Index n = 0; n < dual.size(); ++n) {
      // Both sides mix at most Tk values after scores of D products: (Tk + D + 16) roundings, times the scores' own
      // size in the exponent, which stays below 64 for these inputs.
      const double tolerance = static_cast<double>(c.shape.Tk + c.shape.D + 16) * 64 * kRounding * 8;
      ASSERT_NEAR(dual.data()[n].value, results.out.data()[n], tolerance);
      forward += dual.data()[n].slope * c.dout.data()[n];
      size += std::abs(dual.data()[n].slope * c.dout.data()[n]);
    }
    const double backward = sum_of_products(u.q, results.dq) + sum_of_products(u.k, results.dk) +
                            sum_of_products(u.v, results.dv) + sum_of_products(u.bias, results.dbias);
    size += sum_of_magnitudes(u.q, results.dq) + sum_of_magnitudes(u.k, results.dk) +
            sum_of_magnitudes(u.v, results.dv) + sum_of_magnitudes(u.bias, results.dbias);
    // Each side is right to Tk + D + E + 16 < 40 roundings of |dP| + |mean|, which in these problems is less than
    // 200 times what is left of them after dS = P∘(dP − mean) has cancelled.
    ASSERT_NEAR(forward, backward, size * 40 * 200 * kRounding);
  });
}

// Central differences of fourth order at steps ε and 2ε. Their own error is told by how much the two disagree, plus
// rounding: each of the four losses is right to (Tk + D + 16) roundings of Σ|dout·out| magnified by scores below 64.
TEST_P(ReferenceFeature, BackwardAgreesWithCentralDifferences) {
  Index checked = 0;
  for_cases(4, 3, [&checked](AttentionCase<double>& c, Random&) {
    const AttentionResults<double> results = run_reference(c);
    AttentionResults<double> scratch(c.shape, c.bias.extents());
    const auto loss = [&] {
      attention_reference_forward<double>({.out = scratch.out}, c.inputs(), c.options());
      return sum_of_products(scratch.out, c.dout);
    };
    const double size = sum_of_magnitudes(results.out, c.dout) + 1;
    const auto check = [&](Tensor<double, 4>& x, const Tensor<double, 4>& dx, const char* name) {
      for (Index n = 0; n < x.size(); ++n) {
        const double at = x.data()[n];
        if (!std::isfinite(at)) continue;
        const auto central = [&](double step) {
          x.data()[n] = at + step;
          const double ahead = loss();
          x.data()[n] = at - step;
          const double behind = loss();
          x.data()[n] = at;
          return (ahead - behind) / (2 * step);
        };
        constexpr double kStep = 1e-3;
        const double one = central(kStep), two = central(2 * kStep), four = central(4 * kStep);
        const double fine = (4 * one - two) / 3, coarse = (4 * two - four) / 3;
        const double rounding = 64 * static_cast<double>(c.shape.Tk + c.shape.D + 16) * kRounding * size * 2 / kStep;
        ASSERT_NEAR(dx.data()[n], fine, std::abs(fine - coarse) + rounding) << name << " " << n;
        ++checked;
      }
    };
    check(c.q, results.dq, "dq");
    check(c.k, results.dk, "dk");
    check(c.v, results.dv, "dv");
    check(c.bias, results.dbias, "dbias");
  });
  EXPECT_GT(checked, 1000);
  RecordProperty("coordinates_checked", static_cast<int>(checked));
}

// Σ_j dS(i, j) = 0: shifting all scores of a row changes nothing. With a bias per pair, dbias is dS.
TEST(Reference, ScoreGradientsOfARowSumToZero) {
  CaseFeatures features{.bias = false, .large_scores = false};
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    AttentionCase<double> c = random_case<double>(random, features);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, c.description));
    c.bias = Tensor<double, 4>({c.shape.B, c.shape.H, c.shape.Tq, c.shape.Tk});
    const AttentionResults<double> results = run_reference(c);
    for (Index row = 0; row < c.shape.B * c.shape.H * c.shape.Tq; ++row) {
      double sum = 0;
      for (Index j = 0; j < c.shape.Tk; ++j) sum += results.dbias.data()[row * c.shape.Tk + j];
      // Σ P is 1 to Tk roundings, and the mean of dP, at most about 30 here, right to Tk + E of them.
      EXPECT_NEAR(sum, 0, 30 * static_cast<double>(2 * c.shape.Tk + c.shape.E + 8) * kRounding);
    }
  }
}

AttentionCase<double> small_case() {
  Random random(7);
  CaseFeatures features = CaseFeatures::none();
  AttentionCase<double> c = random_case<double>(random, features);
  c.shape = {.B = 2, .Tq = 3, .Tk = 4, .H = 2, .G = 1, .D = 2, .E = 3};
  c.q = Tensor<double, 4>({2, 2, 3, 2}), c.k = Tensor<double, 4>({2, 1, 4, 2}), c.v = Tensor<double, 4>({2, 1, 4, 3});
  c.dout = Tensor<double, 4>({2, 2, 3, 3});
  fill_normal(random, c.q), fill_normal(random, c.k), fill_normal(random, c.v), fill_normal(random, c.dout);
  return c;
}

std::string error_of(const AttentionCase<double>& c) {
  try {
    run_reference(c);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Reference, NamesThePlaceOfWhatIsNotFinite) {
  AttentionCase<double> c = small_case();
  EXPECT_EQ(error_of(c), "");
  for (const double bad : {kNan, kInfinity, -kInfinity}) {
    c = small_case(), c.q(1, 1, 2, 0) = bad;
    EXPECT_THAT(error_of(c), testing::HasSubstr("q[1, 1, 2, 0]: expected a finite number"));
    c = small_case(), c.k(1, 0, 3, 1) = bad;
    EXPECT_THAT(error_of(c), testing::HasSubstr("k[1, 0, 3, 1]: expected a finite number"));
    c = small_case(), c.v(0, 0, 2, 2) = bad;
    EXPECT_THAT(error_of(c), testing::HasSubstr("v[0, 0, 2, 2]: expected a finite number"));
    c = small_case(), c.dout(0, 1, 2, 0) = bad;
    EXPECT_THAT(error_of(c), testing::HasSubstr("dout[0, 1, 2, 0]: expected a finite number"));
  }
  c = small_case(), c.bias = Tensor<double, 4>({1, 2, 3, 4}), c.bias(0, 1, 2, 3) = kNan;
  EXPECT_THAT(error_of(c), testing::HasSubstr("bias[0, 1, 2, 3]: expected a finite number"));
  c = small_case(), c.q(0, 0, 0, 0) = 1e300, c.k(0, 0, 1, 0) = 1e300;
  EXPECT_THAT(error_of(c), testing::HasSubstr("score[0, 0, 0, 1]: expected a finite number"));
}

TEST(Reference, HiddenPlacesMayHoldAnything) {
  AttentionCase<double> c = small_case();
  c.settings.causal = true;
  c.settings.alignment = Alignment::top_left;  // key 3 is seen by nobody
  const AttentionResults<double> before = run_reference(c);
  for (const double junk : {kNan, kInfinity, 1e300}) {
    for (Index b = 0; b < 2; ++b) c.k(b, 0, 3, 0) = c.v(b, 0, 3, 1) = junk;
    EXPECT_EQ(first_difference(before, run_reference(c)), "");
  }
}

// The single-head example of the article as NumPy computes it: q, k and v are x times a weight.
TEST(Reference, AgreesWithNumPy) {
  const std::filesystem::path path = std::filesystem::path(HEEDFUL_GOLDENS) / "numpy" / "attention.npz";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent";
  const ArrayMap arrays = read_npz(path);
  const auto x = to_tensor<double, 3>(at(arrays, "x"), "x");  // [B, T, C]
  const Index B = x.extent(0), T = x.extent(1);
  const auto project = [&](const char* name) {
    const auto weight = to_tensor<double, 2>(at(arrays, name), name);  // [C, D]
    Tensor<double, 4> y({B, 1, T, weight.extent(1)});
    for (Index b = 0; b < B; ++b) {
      for (Index t = 0; t < T; ++t) {
        for (Index c = 0; c < weight.extent(0); ++c) {
          for (Index d = 0; d < weight.extent(1); ++d) y(b, 0, t, d) += x(b, t, c) * weight(c, d);
        }
      }
    }
    return y;
  };
  AttentionCase<double> c;
  c.q = project("query_weight"), c.k = project("key_weight"), c.v = project("value_weight");
  const Index D = c.q.extent(3), E = c.v.extent(3);
  c.shape = {.B = B, .Tq = T, .Tk = T, .H = 1, .G = 1, .D = D, .E = E};
  c.dout = Tensor<double, 4>({B, 1, T, E});
  const AttentionResults<double> results = run_reference(c);
  const auto expect_near = [&](const Tensor<double, 4>& got, const char* name) {
    const auto expected = to_tensor<double, 3>(at(arrays, name), name);
    ASSERT_EQ(got.size(), expected.size());
    // Numbers below 16 out of sums of 16, then 8, then 5 products: 40 roundings on each side, twice in the exponent.
    for (Index n = 0; n < got.size(); ++n) EXPECT_NEAR(got.data()[n], expected.data()[n], 4 * 40 * 16 * kRounding);
  };
  expect_near(results.scores, "scores");
  expect_near(results.weights, "weights");
  expect_near(results.out, "output");
}

}  // namespace
}  // namespace heedful
