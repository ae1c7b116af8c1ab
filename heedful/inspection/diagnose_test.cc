#include "heedful/inspection/diagnose.h"

#include <gtest/gtest.h>

#include "heedful/inspection/diagnose_probes.h"
#include "heedful/inspection/faults.h"

namespace heedful {
namespace {

ProbeOptions everything(DataType type, RotaryLayout layout = RotaryLayout::half_split) {
  ProbeOptions options;
  options.features = ProbeFeatures::all();
  options.features.hidden_nan = true;
  options.type = type;
  options.layout = layout;
  return options;
}

// The probes answered by an implementation with these faults; only the output and the gradients are given.
std::vector<Observation> observe(const ProbeOptions& options, const std::vector<std::string>& faults) {
  std::vector<Observation> result;
  for (AttentionCase& probe : standard_probes(options)) {
    const bool applies = std::ranges::all_of(faults, [&](const std::string& fault) {
      const auto where = diagnosis::find_fault(fault).applies;
      return !where || where(probe);
    });
    if (!applies) continue;
    AttentionAnswer answer = simulate(probe, faults);
    answer.weights = {};
    result.push_back({std::move(probe), std::move(answer)});
  }
  return result;
}

TEST(Diagnose, NamesEveryFaultInSinglePrecision) {
  const Context context(2);
  DiagnoseOptions options;
  options.pairs = options.counterexample = false;
  for (const diagnosis::Fault& fault : diagnosis::catalogue()) {
    SCOPED_TRACE(fault.name);
    const RotaryLayout layout =
        fault.name == "position_half_for_interleaved" ? RotaryLayout::interleaved : RotaryLayout::half_split;
    const std::vector<Observation> observations =
        observe(everything(DataType::f32, layout), {std::string(fault.name)});
    if (fault.name == "empty_row_zero") {
      EXPECT_TRUE(observations.empty());  // not a fault where 0 is what was declared
      continue;
    }
    const Diagnosis d = diagnose(context, observations, options);
    EXPECT_EQ(d.verdict, Verdict::fault) << name(d.verdict);
    ASSERT_FALSE(d.findings.empty());
    EXPECT_EQ(d.findings.size(), 1u) << d.findings[1].text();
    EXPECT_EQ(d.findings.front().faults.front(), fault.name) << d.findings.front().text();
    EXPECT_FALSE(d.locations.empty());
  }
}

}  // namespace
}  // namespace heedful
