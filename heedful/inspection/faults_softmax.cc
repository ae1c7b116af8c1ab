// The softmax runs over the keys of one row, base e, divided by its own sum, its largest score subtracted first. Row
// and column sums, and very large scores, tell the rest.
#include <algorithm>
#include <cmath>
#include <limits>

#include "heedful/inspection/faults.h"

namespace heedful::diagnosis {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Calls row(w, b, h, i) for every row, after the right softmax has filled the empty ones.
template <class Row>
void for_each_row(Walk& w, const Row& row) {
  for (Index b = 0; b < w.B; ++b) {
    for (Index h = 0; h < w.H; ++h) {
      for (Index i = 0; i < w.Tq; ++i) row(b, h, i);
    }
  }
}

double largest_score(const Walk& w, Index b, Index h, Index i) {
  double largest = -kInfinity;
  for (Index j = 0; j < w.Tk; ++j) {
    if (!w.excluded(b, h, i, j)) largest = std::max(largest, w.scores(b, h, i, j));
  }
  return largest;
}

// weights = exp(s − shift(row)) / (sum + extra(row)), where exponentials overflow as they do in `type`.
template <class Shift, class Extra>
void exponentials(Walk& w, const Rounding& type, const Shift& shift, const Extra& extra) {
  for_each_row(w, [&](Index b, Index h, Index i) {
    const double largest = largest_score(w, b, h, i);
    if (largest == -kInfinity) return w.fill_empty_row(b, h, i);
    const double subtracted = shift(largest);
    double sum = extra(largest);
    for (Index j = 0; j < w.Tk; ++j) {
      double e = w.excluded(b, h, i, j) ? 0 : std::exp(w.scores(b, h, i, j) - subtracted);
      if (e > type.largest) e = kInfinity;
      if (e < type.tiny) e = 0;
      w.weights(b, h, i, j) = e;
      sum += e;
    }
    if (sum > type.largest) sum = kInfinity;
    for (Index j = 0; j < w.Tk; ++j) w.weights(b, h, i, j) /= sum;
    w.lse(b, h, i) = subtracted + std::log(sum);
  });
}

const Rounding& accumulator(const Walk& w) {
  return rounding_of(w.given.declared.type == DataType::f64 ? DataType::f64 : DataType::f32);
}

// Normalises along an axis other than the keys: group(b, h, i) names the set that a row's weights are summed with.
template <class Set>
void normalize_over(Walk& w, Index sets, const Set& set_of) {
  for (Index j = 0; j < w.Tk; ++j) {
    std::vector<double> largest(static_cast<std::size_t>(sets), -kInfinity), sum(static_cast<std::size_t>(sets));
    for_each_row(w, [&](Index b, Index h, Index i) {
      double& most = largest[static_cast<std::size_t>(set_of(b, h, i))];
      if (!w.excluded(b, h, i, j)) most = std::max(most, w.scores(b, h, i, j));
    });
    for_each_row(w, [&](Index b, Index h, Index i) {
      const std::size_t set = static_cast<std::size_t>(set_of(b, h, i));
      w.weights(b, h, i, j) = w.excluded(b, h, i, j) ? 0 : std::exp(w.scores(b, h, i, j) - largest[set]);
      sum[set] += w.weights(b, h, i, j);
    });
    for_each_row(w, [&](Index b, Index h, Index i) {
      if (!w.excluded(b, h, i, j)) w.weights(b, h, i, j) /= sum[static_cast<std::size_t>(set_of(b, h, i))];
    });
  }
}

void over_queries(Recipe& r) {
  r.normalize = [](Walk& w) { normalize_over(w, w.B * w.H, [&](Index b, Index h, Index) { return b * w.H + h; }); };
}

void over_heads(Recipe& r) {
  r.normalize = [](Walk& w) { normalize_over(w, w.B * w.Tq, [&](Index b, Index, Index i) { return b * w.Tq + i; }); };
}

void over_batch(Recipe& r) {
  r.normalize = [](Walk& w) { normalize_over(w, w.H * w.Tq, [&](Index, Index h, Index i) { return h * w.Tq + i; }); };
}

void missing(Recipe& r) {
  r.normalize = [](Walk& w) {
    for (Index at = 0; at < w.weights.size(); ++at) {
      w.weights.data()[at] = w.excluded.data()[at] ? 0 : w.scores.data()[at];
    }
  };
}

void unnormalized(Recipe& r) {
  r.normalize = [](Walk& w) {
    exponentials(w, accumulator(w), [](double largest) { return largest; }, [](double) { return 0.0; });
    for_each_row(w, [&](Index b, Index h, Index i) {
      const double largest = largest_score(w, b, h, i);
      for (Index j = 0; j < w.Tk; ++j) {
        if (largest > -kInfinity) w.weights(b, h, i, j) *= std::exp(w.lse(b, h, i) - largest);
      }
    });
  };
}

void twice(Recipe& r) {
  r.normalize = [softmax = r.normalize](Walk& w) {
    softmax(w);
    w.scores = w.weights.copy();
    softmax(w);
  };
}

void base_two(Recipe& r) {
  r.normalize = [softmax = r.normalize](Walk& w) {
    for (double& score : w.scores) score *= std::log(2.0);
    softmax(w);
  };
}

void base_two_twice(Recipe& r) {
  r.normalize = [softmax = r.normalize](Walk& w) {
    for (double& score : w.scores) score /= std::log(2.0);
    softmax(w);
  };
}

void extra_one(Recipe& r) {
  r.normalize = [](Walk& w) {
    exponentials(
        w, accumulator(w), [](double largest) { return largest; }, [](double largest) { return std::exp(-largest); });
  };
}

void extra_one_after_maximum(Recipe& r) {
  r.normalize = [](Walk& w) {
    exponentials(w, accumulator(w), [](double largest) { return largest; }, [](double) { return 1.0; });
  };
}

void no_maximum(Recipe& r) {
  r.normalize = [](Walk& w) {
    exponentials(w, accumulator(w), [](double) { return 0.0; }, [](double) { return 0.0; });
  };
}

void no_maximum_in_half(Recipe& r) {
  r.normalize = [](Walk& w) {
    const Rounding& type = w.given.declared.type == DataType::f16 ? w.type : accumulator(w);
    exponentials(w, type, [](double) { return 0.0; }, [](double) { return 0.0; });
  };
}

// The running maximum starts at a number that real scores can fall below.
template <int kFloor>
void maximum_starts_at(Recipe& r) {
  r.normalize = [](Walk& w) {
    exponentials(
        w, accumulator(w), [](double largest) { return std::max<double>(largest, kFloor); },
        [](double) { return 0.0; });
    for_each_row(w, [&](Index b, Index h, Index i) {  // a sum of 0 leaves zeros, as in llm.c
      for (Index j = 0; j < w.Tk; ++j) {
        if (std::isnan(w.weights(b, h, i, j)) && kFloor < 0) w.weights(b, h, i, j) = 0;
      }
    });
  };
}

void maximum_negated(Recipe& r) {
  r.normalize = [softmax = r.normalize](Walk& w) {
    for (double& score : w.scores) score = -score;
    softmax(w);
  };
}

void lse_in_base_two(Recipe& r) {
  r.normalize = [softmax = r.normalize](Walk& w) {
    softmax(w);
    for (double& lse : w.lse) lse /= std::log(2.0);
  };
}

void lse_without_maximum(Recipe& r) {
  r.normalize = [softmax = r.normalize](Walk& w) {
    softmax(w);
    for_each_row(w, [&](Index b, Index h, Index i) {
      const double largest = largest_score(w, b, h, i);
      if (largest > -kInfinity) w.lse(b, h, i) -= largest;
    });
  };
}

}  // namespace

std::vector<Fault> softmax_faults() {
  using enum Group;
  return {
      {"softmax_over_queries", softmax, kNormalize, over_queries, "weights are normalised over the queries",
       "columns sum to 1, rows do not", "Take the softmax over the last axis, the keys."},
      {"softmax_over_heads", softmax, kNormalize, over_heads, "weights are normalised over the heads",
       "the same key's weights sum to 1 over the heads", "Take the softmax over the last axis, the keys."},
      {"softmax_over_batch", softmax, kNormalize, over_batch, "weights are normalised over the batch",
       "a batch of one gives weights of 1", "Take the softmax over the last axis, the keys."},
      {"softmax_missing", softmax, kNormalize, missing, "raw scores weigh the values", "negative weights",
       "Apply the softmax."},
      {"softmax_unnormalized", softmax, kNormalize, unnormalized, "exponentials are not divided by their sum",
       "the largest weight of every row is 1", "Divide by the row sum."},
      {"softmax_twice", softmax, kNormalize, twice, "the softmax is applied to the weights again",
       "weights nearly even", "Apply the softmax once."},
      {"softmax_base_two", softmax, kNormalize, base_two, "2^s stands for e^s", "weights too even by a factor log 2",
       "Multiply scores by log2(e) before exp2."},
      {"softmax_base_two_twice", softmax, kNormalize, base_two_twice, "e^s is taken of scores already times log2(e)",
       "weights too sharp by a factor log2(e)", "Use exp2 with log2(e), or exp without."},
      {"softmax_extra_one", softmax, kNormalize, extra_one, "1 is added to the denominator",
       "rows sum to less than 1", "Divide by the sum of the exponentials alone."},
      {"softmax_extra_one_after_maximum", softmax, kNormalize, extra_one_after_maximum,
       "1 is added to the denominator after the largest score was subtracted", "rows sum to at most 1/2 … 1",
       "Divide by the sum of the exponentials alone."},
      {"softmax_no_maximum", softmax, kNormalize,
       std::vector<Variant>{{"", no_maximum}, {"exponentials in f16", no_maximum_in_half}},
       "the largest score is not subtracted before exp", "NaN at scores above 88 (f32), 11 (f16)",
       "Subtract the row's largest visible score."},
      {"softmax_maximum_starts_high", softmax, kNormalize,
       std::vector<Variant>{{"starts at −10000", maximum_starts_at<-10'000>}, {"starts at 0", maximum_starts_at<0>}},
       "the search for the largest score starts at a finite number", "rows of very negative scores become 0 or NaN",
       "Start the maximum at −∞."},
      {"softmax_negated", softmax, kNormalize, maximum_negated, "exp(max − s) stands for exp(s − max)",
       "the least similar key weighs most", "Exponentiate s − max."},
      {"lse_in_base_two", softmax, kLogSumExp, lse_in_base_two, "the log-sum-exp is returned in base 2",
       "the output is right; lse is too large by log2(e)", "Multiply the base-2 log-sum-exp by log 2."},
      {"lse_without_maximum", softmax, kLogSumExp, lse_without_maximum,
       "the log of the sum is returned without the maximum added back",
       "the output is right; lse lies in [0, log Tk]", "Return maximum + log(sum)."},
  };
}

}  // namespace heedful::diagnosis
