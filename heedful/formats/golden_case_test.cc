#include "heedful/formats/golden_case.h"

#include <gtest/gtest.h>

namespace heedful {
namespace {

TEST(GoldenCaseTest, LoadsEveryCaseWithItsSlots) {
  const std::filesystem::path folder = std::filesystem::path(HEEDFUL_GOLDENS) / "onnx";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no recorded operator cases at " << folder;
  std::size_t cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    for (const auto& path : golden_cases(entry.path().filename().string())) {
      SCOPED_TRACE(path.string());
      const GoldenCase golden = load_golden_case(path);
      EXPECT_TRUE(golden.attributes.is_object());
      EXPECT_FALSE(golden.inputs.empty());
      EXPECT_FALSE(golden.outputs.empty());
      EXPECT_NE(golden.input(0), nullptr);
      EXPECT_EQ(golden.input(golden.input_names.size()), nullptr);
      for (const auto& [name, array] : golden.inputs) {
        EXPECT_EQ(to_vector<double>(array, name).size(), static_cast<std::size_t>(array.size()));
      }
      ++cases;
    }
  }
  EXPECT_EQ(cases, 165u);
}

TEST(GoldenCaseTest, AnAbsentInputKeepsItsSlot) {
  const auto cases = golden_cases("Attention");
  if (cases.empty()) GTEST_SKIP() << "no recorded operator cases at " << HEEDFUL_GOLDENS;
  const GoldenCase golden =
      load_golden_case(cases.front().parent_path() / "attention_4d_diff_heads_mask4d_padded_kv.json");
  EXPECT_EQ(golden.input(4), nullptr);
  EXPECT_EQ(golden.input(5), nullptr);
  ASSERT_NE(golden.input(6), nullptr);
  EXPECT_EQ(golden.input(6), &golden.inputs.at("nonpad_kv_seqlen"));
  EXPECT_EQ(golden.attribute("q_num_heads", 7), 7);
}

}  // namespace
}  // namespace heedful
