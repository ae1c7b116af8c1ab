// The working path against the reference on random problems: every feature alone and together, odd sizes, Tq ≠ Tk,
// D ≠ E, G < H, ties, rank-one keys, scores up to ±1e4.
#include <gtest/gtest.h>

#include <cstdlib>

#include "heedful/attention/attention_error_bound.h"
#include "heedful/attention/attention_test_case.h"

namespace heedful {
namespace {

// HEEDFUL_SWEEP=N in the environment makes the sweep N problems long.
std::uint64_t sweep_length() {
  const char* text = std::getenv("HEEDFUL_SWEEP");
  return text == nullptr ? 400 : std::strtoull(text, nullptr, 10);
}

template <class T>
class AttentionSweep : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(AttentionSweep, Types);

TYPED_TEST(AttentionSweep, AgreesWithTheReference) {
  double largest = 0;
  for (std::uint64_t seed = 0; seed < sweep_length(); ++seed) {
    Random random(seed);
    CaseFeatures features;
    if (seed % 10 == 9) features.max_length = 90;
    const AttentionCase<TypeParam> c = random_case<TypeParam>(random, features);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, c.description));
    const AttentionResults<double> reference = run_reference(c);
    const WorstError worst = worst_error(run_attention(c), reference, rounding_bounds(c, reference));
    ASSERT_LE(worst.ratio, 1) << worst.where;
    largest = std::max(largest, worst.ratio);
  }
  std::cout << sweep_length() << " problems, largest error " << largest << " of its bound\n";
}

}  // namespace
}  // namespace heedful
