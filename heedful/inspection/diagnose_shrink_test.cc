#include "heedful/inspection/diagnose_shrink.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "heedful/inspection/diagnose_counterexample.h"
#include "heedful/inspection/diagnose_probes.h"

namespace heedful {
namespace {

// Deleting indices of an axis keeps a valid case, whatever the probe uses.
TEST(Shrink, WithoutSomeIndicesACaseIsStillACase) {
  ProbeOptions options;
  options.features = ProbeFeatures::all();
  for (const AttentionCase& probe : standard_probes(options)) {
    for (const Axis axis : {Axis::batch, Axis::group, Axis::head_of_group, Axis::query, Axis::value_width}) {
      if (extent(probe, axis) < 2) continue;
      const AttentionCase smaller = without(probe, axis, 0, 1);
      EXPECT_EQ(extent(smaller, axis), extent(probe, axis) - 1);
      EXPECT_NO_THROW(check_case(smaller)) << probe.name << " axis " << static_cast<int>(axis);
    }
  }
}

TEST(Shrink, KeepsTheNumbersThatAreLeft) {
  const std::vector<AttentionCase> probes = standard_probes({});
  const AttentionCase& probe = probes.front();
  const AttentionCase smaller = without(probe, Axis::group, 0, 1);
  const Index group = probe.H() / probe.G();
  EXPECT_EQ(smaller.q(1, 0, 2, 3), probe.q(1, group, 2, 3));
  EXPECT_EQ(smaller.k(1, 0, 2, 3), probe.k(1, 1, 2, 3));
}

// Keys that are deleted leave the length of what is left, on whichever side the padding stands.
TEST(Shrink, DeletedKeysShortenTheSequencesThatHoldThem) {
  const std::vector<AttentionCase> probes = standard_probes({});
  AttentionCase probe = std::ranges::find(probes, "square", &AttentionCase::name)->copy();
  ASSERT_EQ(probe.Tk(), 6);
  probe.declared.key_lengths = {6, 4};
  EXPECT_EQ(without(probe, Axis::key, 0, 2).declared.key_lengths, (std::vector<Index>{4, 2}));
  EXPECT_EQ(without(probe, Axis::key, 3, 6).declared.key_lengths, (std::vector<Index>{3, 3}));
  EXPECT_EQ(without(probe, Axis::key, 4, 6).declared.key_lengths, (std::vector<Index>{4, 4}));
  probe.declared.left_padded = true;
  EXPECT_EQ(without(probe, Axis::key, 0, 2).declared.key_lengths, (std::vector<Index>{4, 4}));
  EXPECT_EQ(without(probe, Axis::key, 1, 4).declared.key_lengths, (std::vector<Index>{3, 2}));
}

// A condition on one number of q shrinks to that number alone.
TEST(Shrink, FindsTheOneNumberThatMatters) {
  const std::vector<AttentionCase> probes = standard_probes({});
  const double sought = probes.front().q(1, 3, 2, 5);
  const auto holds = [&](const AttentionCase& given) {
    return std::find(given.q.begin(), given.q.end(), sought) != given.q.end();
  };
  const AttentionCase smallest = shrink(probes.front(), holds);
  EXPECT_EQ(smallest.q.size(), 1);
  EXPECT_EQ(smallest.v.size(), 1);
  EXPECT_FALSE(smallest.declared.causal);
}

// A fault's counterexample is small, still wrong, and says where.
TEST(Shrink, CounterexamplesAreSmall) {
  for (const std::string fault : {"mask_after_softmax", "scale_missing", "groups_tiled", "causal_leaks_one",
                                  "padding_of_first_sequence", "padding_missing"}) {
    std::vector<Observation> observations;
    for (AttentionCase& probe : standard_probes({})) observations.push_back({std::move(probe), {}});
    const std::vector<std::string> faults = {fault};
    const auto answers = [&](const AttentionCase& given) { return simulate(given, faults); };
    const std::optional<Counterexample> found = find_counterexample(answers, observations);
    ASSERT_TRUE(found.has_value()) << fault;
    EXPECT_LE(found->given.q.size() + found->given.k.size() + found->given.v.size(), 24) << fault;
    EXPECT_NE(found->place.expected, found->place.got);
    EXPECT_EQ(std::ranges::count(found->given.declared.key_lengths, 0), 0) << fault;
  }
  const auto right = [](const AttentionCase& given) { return simulate(given, {}); };
  std::vector<Observation> observations;
  observations.push_back({square_case({}), {}});
  EXPECT_FALSE(find_counterexample(right, observations).has_value());
}

}  // namespace
}  // namespace heedful
