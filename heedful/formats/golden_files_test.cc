// The recorded files, good and hostile: goldens/files/manifest.json says accept, reject or either, and why.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "heedful/core/error.h"
#include "heedful/formats/npy.h"
#include "heedful/formats/npz.h"
#include "heedful/formats/safetensors.h"

namespace heedful {
namespace {

namespace fs = std::filesystem;

std::string refusal(const fs::path& path) {
  try {
    if (path.extension() == ".npy") {
      read_npy(path);
    } else if (path.extension() == ".npz") {
      read_npz(path);
    } else {
      read_safetensors(path);
    }
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(GoldenFilesTest, EveryFileIsReadOrRefusedAsItShould) {
  const fs::path folder = fs::path(HEEDFUL_GOLDENS) / "files";
  if (!fs::exists(folder)) GTEST_SKIP() << "no recorded files at " << folder;
  const nlohmann::json manifest = nlohmann::json::parse(std::ifstream(folder / "manifest.json"));
  ASSERT_EQ(manifest.size(), 71u);
  for (const nlohmann::json& entry : manifest) {
    const std::string file = entry.at("file"), expect = entry.at("expect");
    const std::string reason = refusal(folder / file);
    if (expect != "either") {
      EXPECT_EQ(reason.empty(), expect == "accept") << file << ": " << entry.at("why") << ": " << reason;
    }
    EXPECT_EQ(reason.find('\n'), std::string::npos) << reason;
  }
}

TEST(GoldenFilesTest, ModelsAndRunsAreReadWhole) {
  const fs::path folder = HEEDFUL_GOLDENS;
  if (!fs::exists(folder)) GTEST_SKIP() << "no recorded models at " << folder;
  const Safetensors model = read_safetensors(folder / "models/gpt-nano-sort/gpt-nano-sort.safetensors");
  EXPECT_EQ(at(model.arrays, "lm_head.weight").shape, (std::vector<Index>{3, 48}));
  const ArrayMap run = read_npz(folder / "numpy/train_copy_6_seed_0_pre_norm.npz");
  EXPECT_EQ(at(run, "batch/tokens").shape, (std::vector<Index>{32, 12}));
}

}  // namespace
}  // namespace heedful
