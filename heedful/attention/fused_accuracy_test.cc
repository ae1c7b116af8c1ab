// Is fused attention as exact as the plain loops anyone would write? Both run on the same random problems in the same
// type and are held against the reference in double. An error is measured in units of its problem's rounding bound, so
// that problems of every size and magnitude can be put side by side. Rounding is luck, so no single problem decides:
// the errors of each kind of problem, sorted, must be nowhere worse.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <vector>

#include "heedful/attention/attention.h"
#include "heedful/attention/attention_error_bound.h"
#include "heedful/attention/attention_test_case.h"
#include "heedful/attention/mask.h"

namespace heedful {
namespace {

// HEEDFUL_SWEEP=N in the environment makes the comparison N problems long.
std::uint64_t sweep_length() {
  const char* text = std::getenv("HEEDFUL_SWEEP");
  return text == nullptr ? 400 : std::strtoull(text, nullptr, 10);
}

// The textbook, in T throughout: products and sums in plain loops, then the softmax, then its gradient.
template <class T>
AttentionResults<T> run_naive(const AttentionCase<T>& c) {
  AttentionResults<T> r(c.shape, c.bias.extents());
  const auto& [B, Tq, Tk, H, G, D, E] = c.shape;
  const AttentionMask<T> mask(c.shape, c.options());
  const T scale = static_cast<T>(score_scale(c.shape, c.settings)), cap = static_cast<T>(c.settings.softcap);
  for (Index b = 0; b < B; ++b) {
    for (Index h = 0; h < H; ++h) {
      const Index g = c.shape.kv_head(h);
      for (Index i = 0; i < Tq; ++i) {
        std::vector<Index> keys;
        for (Index j = 0; j < Tk; ++j) {
          if (mask.sees(b, h, i, j)) keys.push_back(j);
        }
        if (keys.empty()) continue;
        std::vector<T> s(static_cast<std::size_t>(Tk)), slope(s), p(s), dp(s);
        const auto at = [](Index j) { return static_cast<std::size_t>(j); };
        T max = -std::numeric_limits<T>::infinity(), sum = 0;
        for (Index j : keys) {
          T x = 0;
          for (Index d = 0; d < D; ++d) x += c.q(b, h, i, d) * c.k(b, g, j, d);
          x *= scale;
          if (cap > 0) {
            const T t = std::tanh(x / cap);
            x = cap * t, slope[at(j)] = 1 - t * t;
          }
          if (c.bias.size() > 0) x += c.bias(b % c.bias.extent(0), h % c.bias.extent(1), i, j);
          if (c.alibi_slopes.size() > 0) {
            x -= static_cast<T>(c.alibi_slopes(h)) * static_cast<T>(std::abs(mask.position(b, i) - j));
          }
          s[at(j)] = x;
          max = std::max(max, x);
        }
        for (Index j : keys) sum += p[at(j)] = std::exp(s[at(j)] - max);
        for (Index j : keys) {
          p[at(j)] /= sum;
          for (Index e = 0; e < E; ++e) r.out(b, h, i, e) += p[at(j)] * c.v(b, g, j, e);
        }
        T mean = 0;
        for (Index j : keys) {
          for (Index e = 0; e < E; ++e) dp[at(j)] += c.dout(b, h, i, e) * c.v(b, g, j, e);
          mean += p[at(j)] * dp[at(j)];
        }
        for (Index j : keys) {
          T ds = p[at(j)] * (dp[at(j)] - mean) * scale;
          if (cap > 0) ds *= slope[at(j)];
          for (Index d = 0; d < D; ++d) {
            r.dq(b, h, i, d) += ds * c.k(b, g, j, d);
            r.dk(b, g, j, d) += ds * c.q(b, h, i, d);
          }
          for (Index e = 0; e < E; ++e) r.dv(b, g, j, e) += p[at(j)] * c.dout(b, h, i, e);
        }
      }
    }
  }
  return r;
}

template <class T>
AttentionResults<T> run_fused(const AttentionCase<T>& c) {
  AttentionResults<T> r(c.shape, c.bias.extents());
  const Context context;
  attention_forward<T>(context, r.outputs(), c.inputs(), c.options());
  attention_backward<T>(context, r.gradients(false), c.dout, c.inputs(),
                        {.out = r.out, .row_max = r.row_max, .row_sum = r.row_sum}, c.options());
  return r;
}

// Errors of fused and naive code, problem by problem.
struct Errors {
  std::vector<double> fused, naive;
};

double worst(const auto& got, const auto& expected, const auto& bound) {
  double ratio = 0;
  for (Index n = 0; n < got.size(); ++n) {
    const double error = std::abs(static_cast<double>(got.data()[n]) - expected.data()[n]);
    if (error > 0) ratio = std::max(ratio, error / bound.data()[n]);
  }
  return ratio;
}

double quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

TEST(Accuracy, FusedIsAsExactAsNaive) {
  std::map<std::string, Errors> kinds;
  for (std::uint64_t seed = 0; seed < sweep_length(); ++seed) {
    Random random(seed);
    CaseFeatures features = CaseFeatures::none();
    std::string kind = "plain";
    switch (seed % 4) {
      case 0:
        features.causal = true;
        break;
      case 1:
        features.large_scores = true, kind = "large scores";
        break;
      case 2:
        features.degenerate_keys = true, kind = "ties, rank one";
        break;
      default:
        features = {}, kind = "everything";
    }
    features.max_length = seed % 16 < 4 ? 400 : 40;
    if (seed % 16 < 4) kind += ", long";
    features.max_width = 70;
    AttentionCase<float> c = random_case<float>(random, features);
    while (c.shape.B * c.shape.H * c.shape.Tq * c.shape.Tk > 60'000) c = random_case<float>(random, features);
    const AttentionResults<double> exact = run_reference(c), bounds = rounding_bounds(c, exact);
    const AttentionResults<float> fused = run_fused(c), naive = run_naive(c);
    const auto add = [&](const char* name, const auto& member) {
      Errors& errors = kinds[kind + ": " + name];
      errors.fused.push_back(worst(member(fused), member(exact), member(bounds)));
      errors.naive.push_back(worst(member(naive), member(exact), member(bounds)));
    };
    add("out", [](const auto& r) -> const auto& { return r.out; });
    add("dq", [](const auto& r) -> const auto& { return r.dq; });
    add("dk", [](const auto& r) -> const auto& { return r.dk; });
    add("dv", [](const auto& r) -> const auto& { return r.dv; });
  }
  for (const auto& [kind, errors] : kinds) {
    fmt::print("{:32}", kind);
    for (const double part : {0.5, 0.9, 0.99, 1.0}) {
      const double fused = quantile(errors.fused, part), naive = quantile(errors.naive, part);
      fmt::print("  {:.4f}/{:.4f}={:.2f}", fused, naive, naive > 0 ? fused / naive : 1);
    }
    fmt::print("  {} problems\n", errors.fused.size());
  }
}

}  // namespace
}  // namespace heedful
