// Twenty-two mistakes that are not in the catalogue, made up for this test: the verdict must be unknown, in the right
// place, and never a name.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "heedful/inspection/diagnose.h"
#include "heedful/inspection/diagnose_probes.h"
#include "heedful/inspection/faults.h"

namespace heedful {
namespace {

using diagnosis::Recipe;
using diagnosis::Walk;

struct Unlisted {
  std::string_view name;
  diagnosis::Spoil spoil;
  // Where it may show, none: everywhere.
  std::vector<Index> heads, rows, batches;
};

// Runs `change` behind a stage.
diagnosis::Stage then(const diagnosis::Stage& stage, const diagnosis::Stage& change) {
  return [stage, change](Walk& w) {
    stage(w);
    change(w);
  };
}

template <class Row>
diagnosis::Stage each_row_of_weights(const Row& row) {
  return [row](Walk& w) {
    for (Index at = 0; at < w.lse.size(); ++at) row(w, w.weights.data() + at * w.Tk);
  };
}

void renormalize(const Walk& w, double* weights) {
  double sum = 0;
  for (Index j = 0; j < w.Tk; ++j) sum += weights[j];
  for (Index j = 0; j < w.Tk && sum > 0; ++j) weights[j] /= sum;
}

std::vector<Unlisted> unlisted() {
  return {
      {"a temperature of 1.1",
       [](Recipe& r) { r.scale = [scale = r.scale](const Walk& w) { return scale(w) / 1.1; }; },
       {},
       {},
       {}},
      {"head 1 one per cent too large",
       [](Recipe& r) {
         r.mix = then(r.mix, [](Walk& w) {
           for (Index b = 0; b < w.B; ++b) {
             for (Index at = 0; at < w.Tq * w.E; ++at) (&w.out(b, 1, 0, 0))[at] *= 1.01;
           }
         });
       },
       {1},
       {},
       {}},
      {"the last value channel is lost",
       [](Recipe& r) {
         r.mix = then(r.mix, [](Walk& w) {
           for (Index at = w.E - 1; at < w.out.size(); at += w.E) w.out.data()[at] = 0;
         });
       },
       {},
       {},
       {}},
      {"the keys of group 0 are negated",
       [](Recipe& r) {
         r.load = then(r.load, [](Walk& w) {
           for (Index b = 0; b < w.B; ++b) {
             for (Index at = 0; at < w.Tk * w.D; ++at) (&w.k(b, 0, 0, 0))[at] *= -1;
           }
         });
       },
       {},
       {},
       {}},
      {"row i asks with the query of row i − 1",
       [](Recipe& r) {
         r.load = then(r.load, [](Walk& w) {
           for (Index head = 0; head < w.B * w.H; ++head) {
             double* q = w.q.data() + head * w.Tq * w.D;
             std::copy_backward(q, q + (w.Tq - 1) * w.D, q + w.Tq * w.D);
           }
         });
       },
       {},
       {},
       {}},
      {"output channels are one off",
       [](Recipe& r) {
         r.mix = then(r.mix, [](Walk& w) {
           for (Index at = 0; at < w.out.size(); at += w.E) {
             std::rotate(w.out.data() + at, w.out.data() + at + 1, w.out.data() + at + w.E);
           }
         });
       },
       {},
       {},
       {}},
      {"sequence 1 is doubled",
       [](Recipe& r) {
         r.mix = then(r.mix, [](Walk& w) {
           for (Index b = 1; b < std::min<Index>(w.B, 2); ++b) {
             for (Index at = 0; at < w.H * w.Tq * w.E; ++at) (&w.out(b, 0, 0, 0))[at] *= 2;
           }
         });
       },
       {},
       {},
       {1}},
      {"scores are clipped to ±1",
       [](Recipe& r) {
         r.score = then(r.score, [](Walk& w) {
           for (double& s : w.scores) s = std::clamp(s, -1.0, 1.0);
         });
       },
       {},
       {},
       {}},
      {"a ReLU stands for the exponential",
       [](Recipe& r) {
         r.normalize = then(r.normalize, [](Walk& w) {
           for (Index at = 0; at < w.weights.size(); ++at) {
             w.weights.data()[at] = w.excluded.data()[at] ? 0 : std::max(0.0, w.scores.data()[at]) + 1e-3;
           }
           each_row_of_weights(renormalize)(w);
         });
       },
       {},
       {},
       {}},
      {"weights are squared",
       [](Recipe& r) {
         r.normalize = then(r.normalize, each_row_of_weights([](const Walk& w, double* p) {
                              for (Index j = 0; j < w.Tk; ++j) p[j] *= p[j];
                              renormalize(w, p);
                            }));
       },
       {},
       {},
       {}},
      {"the largest weight is dropped",
       [](Recipe& r) {
         r.normalize = then(r.normalize, each_row_of_weights([](const Walk& w, double* p) {
                              *std::max_element(p, p + w.Tk) = 0;
                              renormalize(w, p);
                            }));
       },
       {},
       {},
       {}},
      {"only the three largest weights are kept",
       [](Recipe& r) {
         r.normalize = then(r.normalize, each_row_of_weights([](const Walk& w, double* p) {
                              std::vector<double> sorted(p, p + w.Tk);
                              std::ranges::sort(sorted, std::greater<>());
                              const double third = sorted[static_cast<std::size_t>(std::min<Index>(2, w.Tk - 1))];
                              for (Index j = 0; j < w.Tk; ++j) p[j] = p[j] < third ? 0 : p[j];
                              renormalize(w, p);
                            }));
       },
       {},
       {},
       {}},
      {"0.001 is added to the denominator",
       [](Recipe& r) {
         r.normalize = then(r.normalize, [](Walk& w) {
           for (double& p : w.weights) p /= 1.001;
         });
       },
       {},
       {},
       {}},
      {"0.01 is added to the output",
       [](Recipe& r) {
         r.mix = then(r.mix, [](Walk& w) {
           for (double& x : w.out) x += 0.01;
         });
       },
       {},
       {},
       {}},
      {"row 0 is left at zero",
       [](Recipe& r) {
         r.mix = then(r.mix, [](Walk& w) {
           for (Index head = 0; head < w.B * w.H; ++head) std::fill_n(w.out.data() + head * w.Tq * w.E, w.E, 0.0);
         });
       },
       {},
       {0},
       {}},
      {"key 0 counts twice",
       [](Recipe& r) {
         r.normalize = then(r.normalize, each_row_of_weights([](const Walk& w, double* p) {
                              p[0] *= 2;
                              renormalize(w, p);
                            }));
       },
       {},
       {},
       {}},
      {"queries are normalised",
       [](Recipe& r) {
         r.load = then(r.load, [](Walk& w) {
           for (Index at = 0; at < w.q.size(); at += w.D) {
             double square = 0;
             for (Index d = 0; d < w.D; ++d) square += w.q.data()[at + d] * w.q.data()[at + d];
             for (Index d = 0; d < w.D; ++d) w.q.data()[at + d] /= std::sqrt(square);
           }
         });
       },
       {},
       {},
       {}},
      {"far keys are held back by a tenth a step",
       [](Recipe& r) {
         r.score = then(r.score, [](Walk& w) {
           for (Index at = 0; at < w.scores.size(); ++at) {
             w.scores.data()[at] -= 0.1 * static_cast<double>(w.Tk - at % w.Tk);
           }
         });
       },
       {},
       {},
       {}},
      {"the mean over channels is removed",
       [](Recipe& r) {
         r.mix = then(r.mix, [](Walk& w) {
           for (Index at = 0; at < w.out.size(); at += w.E) {
             double mean = 0;
             for (Index e = 0; e < w.E; ++e) mean += w.out.data()[at + e] / static_cast<double>(w.E);
             for (Index e = 0; e < w.E; ++e) w.out.data()[at + e] -= mean;
           }
         });
       },
       {},
       {},
       {}},
      {"head 1 asks with the queries of head 0",
       [](Recipe& r) {
         r.load = then(r.load, [](Walk& w) {
           for (Index b = 0; b < w.B; ++b) std::copy_n(&w.q(b, 0, 0, 0), w.Tq * w.D, &w.q(b, 1, 0, 0));
         });
       },
       {1},
       {},
       {}},
      {"values are kept in steps of 1/16",
       [](Recipe& r) {
         r.load = then(r.load, [](Walk& w) {
           for (double& x : w.v) x = std::nearbyint(x * 16) / 16;
         });
       },
       {},
       {},
       {}},
      {"channels within a head are reversed",
       [](Recipe& r) {
         r.mix = then(r.mix, [](Walk& w) {
           for (Index at = 0; at < w.out.size(); at += w.E) std::reverse(w.out.data() + at, w.out.data() + at + w.E);
         });
       },
       {},
       {},
       {}},
  };
}

// Every index found must be among those allowed, where any are said.
void expect_within(const std::vector<Index>& found, const std::vector<Index>& allowed) {
  if (!allowed.empty()) {
    EXPECT_EQ(found, allowed);
  }
}

void expect_unknown(DataType type) {
  const Context context(2);
  ProbeOptions options;
  options.features = ProbeFeatures::all();
  options.features.gradients = false;
  options.type = type;
  ASSERT_GE(unlisted().size(), 20u);
  for (const Unlisted& mistake : unlisted()) {
    SCOPED_TRACE(mistake.name);
    std::vector<Observation> observations;
    for (AttentionCase& probe : standard_probes(options)) {
      Recipe recipe = diagnosis::correct_recipe(probe.declared);
      mistake.spoil(recipe);
      AttentionAnswer answer;
      const diagnosis::Walk walked = diagnosis::walk(probe, recipe);
      answer.out = diagnosis::rounded<4>(walked.type, walked.out);
      observations.push_back({std::move(probe), std::move(answer)});
    }
    const Diagnosis d = diagnose(context, observations);
    if (type == DataType::f32) {
      EXPECT_EQ(d.verdict, Verdict::unknown) << name(d.verdict) << " " << d.findings.front().text();
    } else {  // coarse types may hide a small mistake, or leave a class that holds "correct"; they may not name one
      EXPECT_TRUE(d.verdict != Verdict::fault && d.verdict != Verdict::two_faults) << d.findings.front().text();
    }
    if (d.is_correct()) continue;
    ASSERT_FALSE(d.locations.empty());
    for (const Location& place : d.locations) {
      expect_within(place.heads, mistake.heads);
      expect_within(place.rows, mistake.rows);
      expect_within(place.batches, mistake.batches);
    }
  }
}

TEST(UnlistedMistakes, AreUnknownAndInTheRightPlace) {
  expect_unknown(DataType::f32);
}
TEST(UnlistedMistakes, DISABLED_NightlyInHalfPrecisionToo) {
  expect_unknown(DataType::f16);
  expect_unknown(DataType::bf16);
}

}  // namespace
}  // namespace heedful
