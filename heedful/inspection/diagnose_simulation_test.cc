#include "heedful/inspection/diagnose_simulation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "heedful/attention/rotary.h"
#include "heedful/core/half.h"
#include "heedful/core/random.h"
#include "heedful/inspection/diagnose_check.h"
#include "heedful/inspection/diagnose_compare.h"
#include "heedful/inspection/diagnose_probes.h"

namespace heedful {
namespace {

using diagnosis::correct_recipe;
using diagnosis::GradientWalk;
using diagnosis::Recipe;
using diagnosis::Walk;

AttentionUnderTest<double> ours(const Context& context) {
  return {[&](const auto& outputs, const auto& inputs, const auto& options) {
            attention_forward<double>(context, outputs, inputs, options);
          },
          [&](const auto& gradients, const auto& dout, const auto& inputs, const auto& saved, const auto& options) {
            attention_backward<double>(context, gradients, dout, inputs, saved, options);
          }};
}

// The largest difference, relative to the largest number.
template <int Rank>
double difference(const Tensor<double, Rank>& a, const Tensor<double, Rank>& b) {
  EXPECT_EQ(a.extents(), b.extents());
  double most = 0, size = 0;
  for (Index at = 0; at < a.size(); ++at) {
    if (a.data()[at] == b.data()[at]) continue;  // infinities too
    most = std::max(most, std::abs(a.data()[at] - b.data()[at]));
    size = std::max(size, std::abs(b.data()[at]));
  }
  return size > 0 ? most / size : most;
}

// Without a fault the simulation is the library's attention, written a second time. Both are in double: sums of at
// most 301 terms of scores below 700 differ by less than 301 · 700 · 2⁻⁵² ≈ 5e-11.
TEST(Simulation, WithoutAFaultIsOurAttention) {
  const Context context(1);
  ProbeOptions options;
  options.features = ProbeFeatures::all();
  options.features.rotary = options.features.left_padding = false;
  options.type = DataType::f64;
  for (const AttentionCase& probe : standard_probes(options)) {
    SCOPED_TRACE(probe.name);
    const AttentionAnswer answer = answer_with(ours(context), probe);
    const Recipe recipe = correct_recipe(probe.declared);
    const Walk simulated = diagnosis::walk(probe, recipe);
    EXPECT_LT(difference(answer.out, simulated.out), 5e-11);
    EXPECT_LT(difference(answer.weights, simulated.weights), 5e-11);
    EXPECT_LT(difference(answer.lse, simulated.lse), 5e-11);
    if (!probe.has_gradients()) continue;
    const GradientWalk back = diagnosis::walk_back(simulated);
    EXPECT_LT(difference(answer.dq, back.dq), 5e-11);
    EXPECT_LT(difference(answer.dk, back.dk), 5e-11);
    EXPECT_LT(difference(answer.dv, back.dv), 5e-11);
  }
}

// Rotation against attention/rotary.h; both compute angles below 20 in double.
TEST(Simulation, RotatesAsTheLibraryDoes) {
  for (const RotaryLayout layout : {RotaryLayout::half_split, RotaryLayout::interleaved}) {
    ProbeOptions options;
    options.features = ProbeFeatures::all();
    options.layout = layout;
    for (const AttentionCase& probe : standard_probes(options)) {
      if (!probe.declared.rotary) continue;
      const Recipe recipe = correct_recipe(probe.declared);
      const Walk simulated = diagnosis::walk(probe, recipe);
      const RotaryTable<double> table(32, probe.D(), probe.declared.rotary->base);
      Tensor<double, 4> q = probe.q.copy(), k = probe.k.copy();
      const View<const Index, 2> query_positions(probe.declared.query_positions.data(), {probe.B(), probe.Tq()});
      const View<const Index, 2> key_positions(probe.declared.key_positions.data(), {probe.B(), probe.Tk()});
      rotary_forward<double>(q.view(), q, query_positions, table, layout);
      rotary_forward<double>(k.view(), k, key_positions, table, layout);
      EXPECT_LT(difference(q, simulated.q), 1e-13);
      EXPECT_LT(difference(k, simulated.k), 1e-13);
    }
  }
}

// Central differences of the output in q, k and v. With a step of 1e-4 the error is 1e-8 · the third derivative of a
// softmax of scores of order 1, below 1e-6.
TEST(Simulation, GradientsAreDerivatives) {
  ProbeOptions options;
  options.features = ProbeFeatures::all();
  Index checked = 0;
  for (const AttentionCase& probe : standard_probes(options)) {
    if (!probe.has_gradients() || probe.Tk() > 100) continue;
    SCOPED_TRACE(probe.name);
    const Recipe recipe = correct_recipe(probe.declared);
    const auto objective = [&](const AttentionCase& given) {
      const Walk walked = diagnosis::walk(given, recipe);
      double sum = 0;
      for (Index at = 0; at < walked.out.size(); ++at) sum += walked.out.data()[at] * given.dout.data()[at];
      return sum;
    };
    const Walk walked = diagnosis::walk(probe, recipe);
    const GradientWalk back = diagnosis::walk_back(walked);
    const auto check = [&](Tensor<double, 4> AttentionCase::* array, const Tensor<double, 4>& gradient) {
      for (Index at = 0; at < gradient.size(); at += 7) {
        AttentionCase moved = probe.copy();
        (moved.*array).data()[at] += 1e-4;
        const double up = objective(moved);
        (moved.*array).data()[at] -= 2e-4;
        EXPECT_NEAR(gradient.data()[at], (up - objective(moved)) / 2e-4, 1e-6);
        ++checked;
      }
    };
    check(&AttentionCase::q, back.dq);
    check(&AttentionCase::k, back.dk);
    check(&AttentionCase::v, back.dv);
  }
  EXPECT_GT(checked, 200);
}

TEST(Rounding, AgreesWithTheConversionsOfTheLibrary) {
  heedful::Random random(0);
  for (int round = 0; round < 20000; ++round) {
    const double x = random.normal() * std::ldexp(1.0, static_cast<int>(random.integer(-30, 20)));
    const auto single = static_cast<float>(x);
    EXPECT_EQ(diagnosis::round_to(diagnosis::rounding_of(DataType::f32), x), static_cast<double>(single));
    EXPECT_EQ(diagnosis::round_to(diagnosis::rounding_of(DataType::f16), single),
              static_cast<double>(half_to_float(float_to_half(single))));
    EXPECT_EQ(diagnosis::round_to(diagnosis::rounding_of(DataType::bf16), single),
              static_cast<double>(bfloat16_to_float(float_to_bfloat16(single))));
  }
  EXPECT_EQ(diagnosis::round_to(diagnosis::rounding_of(DataType::f16), 65520), HUGE_VAL);
}

}  // namespace
}  // namespace heedful
