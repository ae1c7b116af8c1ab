// Test support: the recorded operator cases, goldens/onnx/<operator>/<case>.{json,npz}. The .npz names each array
// "input.<slot>.<name>" or "output.<slot>.<name>"; an optional array that was left out keeps its slot.
//
//     for (const auto& path : golden_cases("Attention")) {   // none where the folder is absent: GTEST_SKIP()
//       const GoldenCase golden = load_golden_case(path);
//       golden.inputs.contains("attn_mask")                  // by the operator's own names
//       golden.input(3)                                      // or by slot: nullptr where it was left out
//       golden.attribute("scale", 0.25)                      // or the default given
//     }
#ifndef HEEDFUL_FORMATS_GOLDEN_CASE_H_
#define HEEDFUL_FORMATS_GOLDEN_CASE_H_

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "heedful/formats/npz.h"

namespace heedful {

struct GoldenCase {
  std::string name;
  nlohmann::json attributes;
  ArrayMap inputs, outputs;
  std::vector<std::string> input_names, output_names;  // by slot; empty where the array was left out

  const Array* input(std::size_t slot) const { return in_slot(inputs, input_names, slot); }
  const Array* output(std::size_t slot) const { return in_slot(outputs, output_names, slot); }

  template <class T>
  T attribute(const char* key, T otherwise) const {
    return attributes.value(key, otherwise);
  }

 private:
  static const Array* in_slot(const ArrayMap& arrays, const std::vector<std::string>& names, std::size_t slot) {
    return slot < names.size() && !names[slot].empty() ? &at(arrays, names[slot]) : nullptr;
  }
};

inline std::vector<std::filesystem::path> golden_cases(std::string_view op) {
  const std::filesystem::path folder = std::filesystem::path(HEEDFUL_GOLDENS) / "onnx" / op;
  std::vector<std::filesystem::path> cases;
  if (!std::filesystem::is_directory(folder)) return cases;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") cases.push_back(entry.path());
  }
  std::ranges::sort(cases);
  return cases;
}

inline GoldenCase load_golden_case(const std::filesystem::path& path) {
  const nlohmann::json facts = nlohmann::json::parse(std::ifstream(path));
  const ArrayMap arrays = read_npz(std::filesystem::path(path).replace_extension(".npz"));
  GoldenCase golden{path.stem().string(), facts.at("attributes"), {}, {}, facts.at("inputs"), facts.at("outputs")};
  const auto collect = [&](std::string_view side, const std::vector<std::string>& names, ArrayMap& target) {
    for (std::size_t slot = 0; slot < names.size(); ++slot) {
      if (!names[slot].empty()) target[names[slot]] = at(arrays, fmt::format("{}.{}.{}", side, slot, names[slot]));
    }
  };
  collect("input", golden.input_names, golden.inputs);
  collect("output", golden.output_names, golden.outputs);
  return golden;
}

}  // namespace heedful

#endif  // HEEDFUL_FORMATS_GOLDEN_CASE_H_
