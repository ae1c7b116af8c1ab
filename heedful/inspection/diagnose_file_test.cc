#include "heedful/inspection/diagnose_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "heedful/formats/npz.h"
#include "heedful/inspection/diagnose_declared.h"
#include "heedful/inspection/diagnose_probe_files.h"
#include "heedful/inspection/diagnose_probes.h"

namespace heedful {
namespace {

using ::testing::HasSubstr;

template <int Rank>
Array floats(const Extents<Rank>& extents, float step = 0.25f) {
  Tensor<float, Rank> x(extents);
  float value = 0;
  for (float& element : x) element = value += step;
  return to_array(x);
}

Array whole(std::vector<Index> values) {
  Tensor<Index, 1> x({static_cast<Index>(values.size())});
  std::ranges::copy(values, x.begin());
  return to_array(x);
}

ArrayMap small_case() {
  ArrayMap arrays;
  arrays.emplace("q", floats<4>({1, 2, 3, 4}));
  arrays.emplace("k", floats<4>({1, 1, 5, 4}));
  arrays.emplace("v", floats<4>({1, 1, 5, 2}));
  arrays.emplace("out", floats<4>({1, 2, 3, 2}));
  return arrays;
}

std::string error_of(const ArrayMap& arrays, const CaseOverrides& overrides = {}) {
  try {
    read_observation(arrays, "test", overrides);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(DiagnoseFile, ReadsWhatItWrites) {
  ProbeOptions options;
  options.features = ProbeFeatures::all();
  options.layout = RotaryLayout::interleaved;
  for (const AttentionCase& probe : standard_probes(options)) {
    SCOPED_TRACE(probe.name);
    const AttentionCase back = read_case(case_arrays(probe), probe.name, {});
    const auto expect_same = [](const auto& a, const auto& b) {
      ASSERT_EQ(a.size(), b.size());
      EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin()));
    };
    expect_same(back.q, probe.q);
    expect_same(back.k, probe.k);
    expect_same(back.v, probe.v);
    expect_same(back.bias, probe.bias);
    expect_same(back.keep, probe.keep);
    expect_same(back.dout, probe.dout);
    EXPECT_EQ(back.declared.type, probe.declared.type);
    EXPECT_EQ(back.declared.scale, probe.declared.scale);
    EXPECT_EQ(back.declared.softcap, probe.declared.softcap);
    EXPECT_EQ(back.declared.causal, probe.declared.causal);
    if (probe.declared.causal) {
      EXPECT_EQ(back.declared.alignment, probe.declared.alignment);
    }
    EXPECT_EQ(back.declared.query_offsets, probe.declared.query_offsets);
    EXPECT_EQ(back.declared.key_lengths, probe.declared.key_lengths);
    EXPECT_EQ(back.declared.left_padded, probe.declared.left_padded);
    EXPECT_EQ(back.declared.window, probe.declared.window);
    EXPECT_EQ(back.declared.query_documents, probe.declared.query_documents);
    EXPECT_EQ(back.declared.key_documents, probe.declared.key_documents);
    EXPECT_EQ(back.declared.query_positions, probe.declared.query_positions);
    EXPECT_EQ(back.declared.key_positions, probe.declared.key_positions);
    ASSERT_EQ(back.declared.rotary.has_value(), probe.declared.rotary.has_value());
    if (!probe.declared.rotary) continue;
    EXPECT_EQ(back.declared.rotary->layout, probe.declared.rotary->layout);
    EXPECT_EQ(back.declared.rotary->base, probe.declared.rotary->base);
  }
}

TEST(DiagnoseFile, SplitsThreeAxesIntoHeads) {
  ArrayMap arrays;
  arrays.emplace("q", floats<3>({2, 3, 8}));
  arrays.emplace("k", floats<3>({2, 5, 4}));
  arrays.emplace("v", floats<3>({2, 5, 6}));
  arrays.emplace("out", floats<3>({2, 3, 12}));
  const Observation observation = read_observation(arrays, "test", {{}, "heads=2"});
  EXPECT_EQ(observation.given.q.extents(), (Extents<4>{2, 2, 3, 4}));
  EXPECT_EQ(observation.given.k.extents(), (Extents<4>{2, 1, 5, 4}));
  EXPECT_EQ(observation.given.v.extents(), (Extents<4>{2, 1, 5, 6}));
  EXPECT_EQ(observation.given.q(0, 1, 0, 0), 0.25 * 5);  // the fifth number of the first row
  EXPECT_THAT(error_of(arrays), HasSubstr("heads="));
}

TEST(DiagnoseFile, SwapsTokensAndHeadsWhereTokensComeFirst) {
  ArrayMap arrays = small_case();
  arrays.at("q") = floats<4>({1, 3, 2, 4});
  arrays.at("k") = floats<4>({1, 5, 1, 4});
  arrays.at("v") = floats<4>({1, 5, 1, 2});
  arrays.at("out") = floats<4>({1, 3, 2, 2});
  CaseOverrides tokens_first;
  tokens_first.declared = "layout=bthd";
  const Observation o = read_observation(arrays, "test", tokens_first);
  ASSERT_EQ(o.given.q.extents(), (Extents<4>{1, 2, 3, 4}));
  EXPECT_EQ(o.given.q(0, 1, 2, 3), 0.25 * (1 + 3 + 4 * (1 + 2 * 2)));
  EXPECT_EQ(o.answer.out(0, 1, 2, 0), 0.25 * (1 + 0 + 2 * (1 + 2 * 2)));
}

TEST(DiagnoseFile, AMaskOfOneRowIsForAllQueries) {
  ArrayMap arrays = small_case();
  Tensor<bool, 4> mask({1, 1, 1, 5});
  for (Index j = 0; j < 5; ++j) mask(0, 0, 0, j) = j < 3;
  arrays.emplace("mask", to_array(mask));
  const AttentionCase given = read_observation(arrays, "test", {}).given;
  ASSERT_EQ(given.keep.extents(), (Extents<4>{1, 1, 3, 5}));
  for (Index i = 0; i < 3; ++i) {
    for (Index j = 0; j < 5; ++j) EXPECT_EQ(given.keep(0, 0, i, j), j < 3);
  }
}

// What was computed in f32 from f64 inputs, or the other way round, holds no more than f32 can.
TEST(DiagnoseFile, TheTypeIsTheCoarsestOfInputsAndOutput) {
  ArrayMap arrays = small_case();
  Tensor<double, 4> wide({1, 2, 3, 2});
  arrays.at("out") = to_array(wide);
  EXPECT_EQ(read_observation(arrays, "test", {}).given.declared.type, DataType::f32);
  arrays.at("out") = small_case().at("out");
  Tensor<double, 4> q({1, 2, 3, 4});
  arrays.at("q") = to_array(q);
  EXPECT_EQ(read_observation(arrays, "test", {}).given.declared.type, DataType::f32);
  arrays.at("k") = whole({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  arrays.at("k").shape = {1, 1, 5, 4};
  EXPECT_THAT(error_of(arrays), HasSubstr("k: expected f64, f32, bf16 or f16, or --dtype, got i64"));
  CaseOverrides single;
  single.type = DataType::f32;
  EXPECT_EQ(error_of(arrays, single), "no error");
}

TEST(DiagnoseFile, DeclarationsWinOverTheFile) {
  ArrayMap arrays = small_case();
  arrays.emplace("causal", whole({1}));
  CaseOverrides overrides;
  overrides.type = DataType::bf16;
  overrides.declared = "causal=bottom_right,scale=0.5,softcap=30,window=2,padding=left,empty=nan";
  const AttentionCase given = read_case(arrays, "test", overrides);
  EXPECT_EQ(given.declared.type, DataType::bf16);
  EXPECT_EQ(given.declared.alignment, Alignment::bottom_right);
  EXPECT_EQ(given.declared.scale, 0.5);
  EXPECT_EQ(given.declared.softcap, 30);
  EXPECT_EQ(given.declared.window, 2);
  EXPECT_TRUE(given.declared.left_padded);
  EXPECT_EQ(given.declared.empty_row, EmptyRowValue::nan);
  overrides.declared = "causal=none,scale=default";
  EXPECT_FALSE(read_case(arrays, "test", overrides).declared.causal);
}

TEST(DiagnoseFile, TakesTheLastPositionsForTheQueries) {
  ArrayMap arrays = small_case();
  arrays.emplace("positions", whole({3, 4, 5, 6, 7}));
  const AttentionCase given = read_case(arrays, "test", {{}, "causal=bottom_right,rope=interleaved,rope_base=500"});
  EXPECT_THAT(given.declared.query_positions, ::testing::ElementsAre(5, 6, 7));
  EXPECT_EQ(given.declared.rotary->layout, RotaryLayout::interleaved);
  EXPECT_EQ(given.declared.rotary->base, 500);
  EXPECT_THAT(error_of(arrays), HasSubstr("query_positions"));
  EXPECT_FALSE(read_case(arrays, "test", {{}, "rope=none"}).declared.rotary.has_value());
}

TEST(DiagnoseFile, RefusesBadInputInOneLine) {
  ArrayMap arrays = small_case();
  arrays.erase("out");
  EXPECT_THAT(error_of(arrays), HasSubstr("out"));
  arrays = small_case();
  arrays.erase("v");
  EXPECT_THAT(error_of(arrays), HasSubstr("\"v\""));
  arrays = small_case();
  arrays.at("k") = floats<4>({1, 1, 5, 3});
  EXPECT_THAT(error_of(arrays), HasSubstr("k: expected shape [1, 1, 5, 4], got [1, 1, 5, 3]"));
  arrays = small_case();
  arrays.at("out") = floats<4>({1, 2, 3, 4});
  EXPECT_THAT(error_of(arrays), HasSubstr("out: expected shape [1, 2, 3, 2]"));
  arrays = small_case();
  arrays.emplace("key_length", whole({5}));
  EXPECT_THAT(error_of(arrays), HasSubstr("'key_length': expected one of"));
  arrays = small_case();
  arrays.emplace("key_lengths", whole({6}));
  EXPECT_THAT(error_of(arrays), HasSubstr("key_lengths: expected 0 to 5, got 6"));
  arrays = small_case();
  arrays.emplace("mask", floats<2>({3, 5}));
  EXPECT_THAT(error_of(arrays), HasSubstr("name an additive mask bias"));
  arrays = small_case();
  arrays.emplace("causal", whole({7}));
  EXPECT_THAT(error_of(arrays), HasSubstr("causal: expected 0"));
  arrays = small_case();
  arrays.emplace("dq", floats<4>({1, 2, 3, 4}));
  EXPECT_THAT(error_of(arrays), HasSubstr("dout"));
  EXPECT_THAT(error_of(small_case(), {{}, "causal=square"}), HasSubstr("got square"));
  EXPECT_THAT(error_of(small_case(), {{}, "cosual=square"}), HasSubstr("key: expected one of"));
  EXPECT_THAT(error_of(small_case(), {{}, "window=x"}), HasSubstr("window: expected a number"));
  EXPECT_THAT(error_of(small_case(), {{}, "window"}), HasSubstr("key=value"));
  EXPECT_THAT(error_of(small_case(), {DataType::i32, ""}), HasSubstr("i32"));
  EXPECT_EQ(error_of(small_case()), "no error");
}

TEST(DiagnoseFile, RefusesWhatIsNotFiniteWhereItIsSeen) {
  ArrayMap arrays = small_case();
  Tensor<float, 4> k = to_tensor<float, 4>(arrays.at("k"), "k");
  k(0, 0, 4, 1) = std::numeric_limits<float>::quiet_NaN();
  arrays.at("k") = to_array(k);
  EXPECT_THAT(error_of(arrays), HasSubstr("k[0, 0, 4, 1]: expected a finite number where it is visible"));
  arrays.emplace("key_lengths", whole({4}));  // now it is hidden
  EXPECT_EQ(error_of(arrays), "no error");
}

TEST(DiagnoseFile, HostileFilesAreRefused) {
  const std::filesystem::path folder = std::filesystem::path(HEEDFUL_GOLDENS) / "files";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no hostile files beside this checkout";
  int refused = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::filesystem::path path = entry.path();
    if (!entry.is_regular_file() || path.extension() == ".json") continue;
    // Good or bad as a file, none of them is a case.
    EXPECT_THROW(read_observation(read_arrays(path), "test", {}), Error) << path;
    ++refused;
  }
  EXPECT_GE(refused, 70);
}

TEST(DiagnoseFile, ProbesGoOutAndComeBackWithAnswers) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() /
      ("heedful-probes-" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()));
  std::filesystem::remove_all(folder);
  const std::vector<AttentionCase> probes = standard_probes({});
  write_probes(folder, probes);
  EXPECT_TRUE(std::filesystem::exists(folder / "README.md"));
  EXPECT_THROW(read_probes(folder, {}), Error);  // no answer yet
  for (std::size_t at = 0; at + 1 < probes.size(); ++at) {
    const AttentionAnswer answer = simulate(probes[at], std::vector<std::string>{"groups_tiled"});
    write_npz(folder / (probes[at].name + ".out.npz"), answer_arrays(answer, DataType::f32));
  }
  const ProbeAnswers answers = read_probes(folder, {});
  EXPECT_EQ(answers.unanswered, std::vector<std::string>{probes.back().name});
  const Diagnosis d = diagnose(Context(1), answers.observations);
  EXPECT_EQ(d.verdict, Verdict::fault);
  EXPECT_TRUE(d.names("groups_tiled"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace heedful
