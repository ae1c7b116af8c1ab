#include "heedful/inspection/diagnose_probe_files.h"

#include <algorithm>

#include "heedful/core/error.h"
#include "heedful/formats/bytes.h"
#include "heedful/formats/npz.h"
#include "heedful/inspection/diagnose_rounding.h"

namespace heedful {
namespace {

constexpr std::string_view kWhere = "diagnose";

template <int Rank>
Array floats(const Tensor<double, Rank>& x, DataType type) {
  if (type == DataType::f64) return to_array(x);
  Tensor<float, Rank> narrow(x.extents());
  std::ranges::transform(x, narrow.begin(), [](double value) { return static_cast<float>(value); });
  return to_array(narrow);
}

Array number(double value) {
  Tensor<double, 1> one({1});
  one(0) = value;
  Array array = to_array(one);
  array.shape.clear();
  return array;
}

Array whole_number(Index value) {
  Tensor<Index, 1> one({1});
  one(0) = value;
  Array array = to_array(one);
  array.shape.clear();
  return array;
}

Array whole_numbers(const std::vector<Index>& values, std::vector<Index> shape) {
  Tensor<Index, 1> row({static_cast<Index>(values.size())});
  std::ranges::copy(values, row.begin());
  Array array = to_array(row);
  array.shape = std::move(shape);
  return array;
}

Index causal_number(const DeclaredAttention& declared) {
  if (!declared.causal) return 0;
  switch (declared.alignment) {
    case Alignment::top_left:
      return 1;
    case Alignment::bottom_right:
      return 2;
    case Alignment::offsets:
      return 3;
    case Alignment::square:
      return 4;
  }
  fail(kWhere, "no such alignment");
}

constexpr std::string_view kReadme = R"(# Probes for an implementation of attention

Run your code on every `<name>.npz` here and save what it computes as `<name>.out.npz` beside it, with an array `out`
(and, if you like, `weights`, `lse`, `dq`, `dk`, `dv`). Then ask for the verdict on all of them:

    heedful diagnose THIS_FOLDER

Every probe holds `q [B, H, Tq, D]`, `k [B, G, Tk, D]`, `v [B, G, Tk, E]` and, where it uses them, the arrays below.
Query head h reads key-value head h / (H / G). The answer is `out [B, H, Tq, E]`:

    softmax over the visible keys of ( softcap( scale · q·k ) + bias ), times v

| array | meaning |
|---|---|
| `causal` | 0 off; query i stands at p(i) and sees keys j ≤ p(i): 1 p = i, 2 p = i + Tk − Tq, 3 p = i + `query_offsets[b]`, 4 p = i with Tq = Tk |
| `key_lengths` [B] | keys at and after the length are padding; with `left_padded` = 1 the padding stands before the keys |
| `window` | W: only keys with \|p(i) − j\| < W are seen, so W counts the current token |
| `mask` [B, H, Tq, Tk] | booleans, true = may look |
| `query_documents` [B, Tq], `key_documents` [B, Tk] | a query sees the keys of its own document |
| `scale` | instead of 1/√D |
| `softcap` | c: scores become c · tanh(s / c), before the bias |
| `bias` [B, H, Tq, Tk] | added to the scores |
| `query_positions`, `key_positions` | rotary positions: q and k are given before the rotation; `rotary_base`, `rotary_interleaved` (1: pairs (2m, 2m + 1); 0: pairs (m, m + D/2)) |
| `dout` [B, H, Tq, E] | the gradient of out, for an implementation that also answers `dq`, `dk`, `dv` |
| `significand_bits` | the type to compute in: 53 f64, 24 f32, 11 f16, 8 bf16; the numbers are exact in it |

A row that may see no key holds zeros. In Python:

    import numpy as np, pathlib
    for path in pathlib.Path(".").glob("*.npz"):
        if path.name.endswith(".out.npz"): continue
        case = np.load(path)
        out = my_attention(case["q"], case["k"], case["v"], ...)
        np.savez(path.with_suffix(".out.npz"), out=out)
)";

}  // namespace

ArrayMap case_arrays(const AttentionCase& given) {
  const DeclaredAttention& declared = given.declared;
  ArrayMap arrays;
  const auto add = [&](std::string_view name, const Tensor<double, 4>& x) {
    if (is_given(x)) arrays.emplace(name, floats(x, declared.type));
  };
  add("q", given.q);
  add("k", given.k);
  add("v", given.v);
  add("bias", given.bias);
  add("dout", given.dout);
  if (is_given(given.keep)) arrays.emplace("mask", to_array(given.keep));
  if (declared.scale) arrays.emplace("scale", number(*declared.scale));
  if (declared.softcap > 0) arrays.emplace("softcap", number(declared.softcap));
  if (declared.window > 0) arrays.emplace("window", whole_number(declared.window));
  if (declared.left_padded) arrays.emplace("left_padded", whole_number(1));
  arrays.emplace("causal", whole_number(causal_number(declared)));
  arrays.emplace("significand_bits", whole_number(diagnosis::rounding_of(declared.type).bits));
  const auto add_rows = [&](std::string_view name, const std::vector<Index>& values, std::vector<Index> shape) {
    if (!values.empty()) arrays.emplace(name, whole_numbers(values, std::move(shape)));
  };
  add_rows("key_lengths", declared.key_lengths, {given.B()});
  add_rows("query_offsets", declared.query_offsets, {given.B()});
  add_rows("query_documents", declared.query_documents, {given.B(), given.Tq()});
  add_rows("key_documents", declared.key_documents, {given.B(), given.Tk()});
  if (!declared.rotary) return arrays;
  add_rows("query_positions", declared.query_positions, {given.B(), given.Tq()});
  add_rows("key_positions", declared.key_positions, {given.B(), given.Tk()});
  arrays.emplace("rotary_base", number(declared.rotary->base));
  arrays.emplace("rotary_interleaved", whole_number(declared.rotary->layout == RotaryLayout::interleaved));
  if (declared.rotary->width > 0) arrays.emplace("rotary_width", whole_number(declared.rotary->width));
  return arrays;
}

ArrayMap answer_arrays(const AttentionAnswer& answer, DataType type) {
  ArrayMap arrays;
  const auto add = [&](std::string_view name, const auto& x) {
    if (is_given(x)) arrays.emplace(name, floats(x, type));
  };
  add("out", answer.out);
  add("weights", answer.weights);
  add("lse", answer.lse);
  add("dq", answer.dq);
  add("dk", answer.dk);
  add("dv", answer.dv);
  return arrays;
}

void write_probes(const std::filesystem::path& folder, std::span<const AttentionCase> probes) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  require(!error && std::filesystem::is_directory(folder), kWhere, "{}: expected a folder that can be made, got: {}",
          folder.string(), error ? error.message() : "another kind of file");
  for (const AttentionCase& probe : probes) write_npz(folder / (probe.name + ".npz"), case_arrays(probe));
  write_file(folder / "README.md", kReadme);
}

ProbeAnswers read_probes(const std::filesystem::path& folder, const CaseOverrides& overrides) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() == ".npz" && path.stem().extension() != ".out") paths.push_back(path);
  }
  require(!paths.empty(), kWhere, "{}: expected probes, <name>.npz, got none", folder.string());
  std::ranges::sort(paths);
  ProbeAnswers result;
  for (const std::filesystem::path& path : paths) {
    const std::string name = path.stem().string();
    std::filesystem::path beside = folder / (name + ".out.npz");
    if (!std::filesystem::exists(beside)) beside = folder / (name + ".out.safetensors");
    if (!std::filesystem::exists(beside)) {
      result.unanswered.push_back(name);
      continue;
    }
    try {
      ArrayMap arrays = read_arrays(path);
      add_answer(arrays, read_arrays(beside));
      result.observations.push_back(read_observation(arrays, name, overrides));
    } catch (const Error& error) {
      fail(name, "{}", error.what());
    }
  }
  require(!result.observations.empty(), kWhere, "{}: expected answers, <name>.out.npz, beside {} probes, got none",
          folder.string(), paths.size());
  return result;
}

}  // namespace heedful
