// Attention on keys in panels, as a cache lends them: the bits of attention on rows, whatever stands behind the last
// key, and a refusal of panels that are not what they have to be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "heedful/attention/attention.h"
#include "heedful/attention/attention_reference.h"
#include "heedful/attention/attention_test_case.h"
#include "heedful/kernels/each_target.h"

namespace heedful {
namespace {

template <class T>
class KeyPanels : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(KeyPanels, Types);

// k [B, G, Tk, D] in panels, `behind` in the columns that are no key's.
template <class T>
Tensor<T, 5> in_panels(const Tensor<T, 4>& k, T behind) {
  const auto& [B, G, Tk, D] = k.extents();
  Tensor<T, 5> panels({B, G, (Tk + 15) / 16, D, 16});
  panels.fill(behind);
  for (Index b = 0; b < B; ++b) {
    for (Index g = 0; g < G; ++g) {
      for (Index j = 0; j < Tk; ++j) {
        for (Index d = 0; d < D; ++d) panels(b, g, j / 16, d, j % 16) = k(b, g, j, d);
      }
    }
  }
  return panels;
}

template <class T>
AttentionResults<T> forward(const Context& context, const AttentionCase<T>& c, const AttentionInputs<T>& inputs) {
  AttentionResults<T> results(c.shape, c.bias.extents());
  attention_forward<T>(context, results.outputs(), inputs, c.options());
  return results;
}

// On one thread and two; on 64 the chunks of keys are shared out.
TYPED_TEST(KeyPanels, GiveTheBitsOfRowsAndWhatStandsBehindThemNoneOnAnyThread) {
  using T = TypeParam;
  using Limits = std::numeric_limits<T>;
  const Context one(1), two(2), many(64);
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    Random random(seed);
    CaseFeatures features;
    if (seed % 10 == 0) features.max_length = 600;
    const AttentionCase<T> c = random_case<T>(random, features);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, c.description));
    const AttentionResults<T> rows = forward(one, c, c.inputs());
    for (const T behind : {Limits::quiet_NaN(), -Limits::infinity(), T{1e30F}}) {
      const Tensor<T, 5> panels = in_panels(c.k, behind);
      const AttentionInputs<T> inputs{.q = c.q, .k = {}, .v = c.v, .key_panels = panels};
      for (const Context* context : {&one, &two, &many}) {
        ASSERT_EQ(first_difference(rows, forward(*context, c, inputs)), "") << behind << " " << context->threads();
      }
    }
    if (seed % 10 != 5) continue;
    const Tensor<T, 5> panels = in_panels(c.k, Limits::quiet_NaN());
    const AttentionInputs<T> inputs{.q = c.q, .k = {}, .v = c.v, .key_panels = panels};
    for_each_target(
        [&](const char* target) { EXPECT_EQ(first_difference(rows, forward(one, c, inputs)), "") << target; });
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

TYPED_TEST(KeyPanels, AreRefusedWhereTheyContradict) {
  using T = TypeParam;
  using testing::HasSubstr;
  const Tensor<T, 4> q({2, 4, 3, 5}), k({2, 2, 20, 5}), v({2, 2, 20, 7}), out({2, 4, 3, 7});
  const Tensor<T, 5> panels = in_panels(k, T{0}), spread({2, 2, 4, 5, 16});
  const Tensor<Bfloat16, 5> panels_bf16(panels.extents());
  const Tensor<Bfloat16, 4> v_bf16(v.extents());
  Tensor<T, 4> result(out.extents());
  const auto attend = [&](const AttentionInputs<T>& inputs) {
    return refused([&] { attention_forward<T>(Context(), {.out = result}, inputs, {}); });
  };
  EXPECT_EQ(attend({.q = q, .k = {}, .v = v, .key_panels = panels}), "accepted");
  EXPECT_EQ(attend({.q = q, .k = {}, .v = {}, .key_panels_bf16 = panels_bf16, .v_bf16 = v_bf16}), "accepted");

  EXPECT_THAT(attend({.q = q, .k = {}, .v = v.view().slice(2, 0, 16), .key_panels = panels}),
              HasSubstr("key_panels: expected [B, G, ⌈Tk/16⌉, D, 16] = [2, 2, 1, 5, 16], got [2, 2, 2, 5, 16]"));
  EXPECT_THAT(attend({.q = q, .k = {}, .v = v, .key_panels = panels.view().slice(3, 0, 4)}),
              HasSubstr("key_panels: expected [B, G, ⌈Tk/16⌉, D, 16] = [2, 2, 2, 5, 16], got [2, 2, 2, 4, 16]"));
  EXPECT_THAT(attend({.q = q, .k = {}, .v = v, .key_panels = panels.view().slice(4, 0, 8)}), HasSubstr("key_panels"));
  EXPECT_THAT(attend({.q = q, .k = {}, .v = v, .key_panels = panels.view().slice(1, 0, 1)}),
              HasSubstr("v: expected"));
  EXPECT_THAT(attend({.q = q, .k = {}, .v = {}, .key_panels = panels}), HasSubstr("key_panels: expected"));
  const View<const T, 5> gaps(spread.data(), panels.extents(), {640, 320, 160, 16, 1});  // every other panel
  EXPECT_THAT(attend({.q = q, .k = {}, .v = v, .key_panels = gaps}),
              HasSubstr("key_panels: expected those of a head without a gap between them, got strides"));
  EXPECT_THAT(attend({.q = q, .k = k, .v = v, .key_panels = panels}),
              HasSubstr("k: expected none beside key_panels"));
  EXPECT_THAT(attend({.q = q, .k = {}, .v = v, .key_panels_bf16 = panels_bf16}),
              HasSubstr("k, v, key_panels: expected none beside key_panels_bf16 and v_bf16"));
  EXPECT_THAT(
      attend({.q = q, .k = {}, .v = {}, .key_panels = panels, .key_panels_bf16 = panels_bf16, .v_bf16 = v_bf16}),
      HasSubstr("k, v, key_panels: expected none beside key_panels_bf16 and v_bf16"));
  EXPECT_THAT(attend({.q = q, .k = {}, .v = {}, .v_bf16 = v_bf16}), HasSubstr("expected"));

  // Gaps between heads are none of this: they are strides.
  const View<const T, 5> apart(spread.data(), panels.extents(), {640, 320, 80, 16, 1});
  EXPECT_EQ(attend({.q = q, .k = {}, .v = v, .key_panels = apart}), "accepted");
}

TYPED_TEST(KeyPanels, ServeTheForwardPassAlone) {
  using T = TypeParam;
  const Tensor<T, 4> q({1, 1, 3, 2}), k(q.extents()), v({1, 1, 3, 4}), out(v.extents());
  const Tensor<T, 5> panels = in_panels(k, T{0});
  const Tensor<T, 3> row({1, 1, 3});
  Tensor<T, 4> dq(q.extents()), dk(k.extents()), dv(v.extents());
  Tensor<double, 4> exact(out.extents());
  const AttentionInputs<T> inputs{.q = q, .k = {}, .v = v, .key_panels = panels};
  const auto message = testing::HasSubstr("key_panels: expected none; what a cache lends serves the forward pass");
  EXPECT_THAT(refused([&] {
                attention_backward<T>(Context(), {.dq = dq, .dk = dk, .dv = dv}, out, inputs,
                                      {.out = out, .row_max = row, .row_sum = row}, {});
              }),
              message);
  EXPECT_THAT(refused([&] { attention_reference_forward<T>({.out = exact}, inputs, {}); }), message);
}

}  // namespace
}  // namespace heedful
