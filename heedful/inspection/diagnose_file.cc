#include "heedful/inspection/diagnose_file.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "heedful/core/error.h"
#include "heedful/formats/npz.h"
#include "heedful/formats/safetensors.h"
#include "heedful/inspection/diagnose_declared.h"
#include "heedful/inspection/diagnose_rounding.h"

namespace heedful {
namespace {

constexpr std::string_view kWhere = "diagnose";

constexpr std::array kInputs = {"q",
                                "k",
                                "v",
                                "mask",
                                "bias",
                                "key_lengths",
                                "positions",
                                "dout",
                                "scale",
                                "softcap",
                                "causal",
                                "window",
                                "left_padded",
                                "rotary_base",
                                "rotary_width",
                                "query_offsets",
                                "query_positions",
                                "key_positions",
                                "query_documents",
                                "key_documents",
                                "rotary_interleaved",
                                "significand_bits"};
constexpr std::array kOutputs = {"out", "weights", "lse", "dq", "dk", "dv"};

void refuse_unknown(const ArrayMap& arrays) {
  for (const auto& [name, array] : arrays) {
    const bool known =
        std::ranges::find(kInputs, name) != kInputs.end() || std::ranges::find(kOutputs, name) != kOutputs.end();
    require(known, kWhere, "array '{}': expected one of {}, {}", name, fmt::join(kInputs, ", "),
            fmt::join(kOutputs, ", "));
  }
}

const Array* find(const ArrayMap& arrays, std::string_view name) {
  const auto found = arrays.find(name);
  return found == arrays.end() ? nullptr : &found->second;
}

template <class T>
std::optional<T> number(const ArrayMap& arrays, std::string_view name) {
  const Array* array = find(arrays, name);
  if (array == nullptr) return std::nullopt;
  require(array->size() == 1, kWhere, "{}: expected one number, got shape {}", name, array->shape_text());
  return to_vector<T>(*array, name).front();
}

std::vector<Index> numbers(const ArrayMap& arrays, std::string_view name) {
  const Array* array = find(arrays, name);
  return array == nullptr ? std::vector<Index>{} : to_vector<Index>(*array, name);
}

// [B, heads, T, width] from itself, from [B, T, heads, width] where tokens come first, from [T, width], or from
// [B, T, heads · width] where `heads` says how to cut it.
Tensor<double, 4> heads_first(Array array, std::string_view name, std::optional<Index> heads, bool tokens_first) {
  if (array.shape.size() == 4 && !tokens_first) return to_tensor<double, 4>(array, name);
  if (array.shape.size() == 4) {
    heads = array.shape[2];
    array.shape = {array.shape[0], array.shape[1], array.shape[2] * array.shape[3]};
  }
  require(array.shape.size() == 2 || array.shape.size() == 3, kWhere,
          "{}: expected [B, heads, T, width], [B, T, heads · width] or [T, width], got {}", name, array.shape_text());
  const bool has_batch = array.shape.size() == 3;
  require(!has_batch || heads.has_value(), kWhere, "{}: expected heads= beside the three axes {}, got none", name,
          array.shape_text());
  const Index B = has_batch ? array.shape[0] : 1, T = array.shape[array.shape.size() - 2], all = array.shape.back();
  const Index H = has_batch ? *heads : 1;
  require(H > 0 && all % H == 0, kWhere, "{}: expected a last axis that {} heads divide, got {}", name, H, all);
  const std::vector<double> values = to_vector<double>(array, name);
  Tensor<double, 4> result({B, H, T, all / H});
  auto value = values.begin();
  for (Index b = 0; b < B; ++b) {
    for (Index t = 0; t < T; ++t) {
      for (Index h = 0; h < H; ++h) {
        for (Index d = 0; d < all / H; ++d) result(b, h, t, d) = *value++;
      }
    }
  }
  return result;
}

// [B|1, H|1, Tq, Tk] from itself, [B|1, Tq, Tk] or [Tq, Tk]; Tq may be 1 for what all queries share.
template <class T>
Tensor<T, 4> shared(const Array& array, std::string_view name, Index Tq) {
  Array widened = array;
  require(2 <= array.shape.size() && array.shape.size() <= 4, kWhere,
          "{}: expected [B|1, H|1, Tq, Tk], [B|1, Tq, Tk] or [Tq, Tk], got {}", name, array.shape_text());
  if (widened.shape.size() == 3) widened.shape.insert(widened.shape.begin() + 1, 1);
  while (widened.shape.size() < 4) widened.shape.insert(widened.shape.begin(), 1);
  const Tensor<T, 4> given = to_tensor<T, 4>(widened, name);
  if (given.extent(2) != 1) return given.copy();
  Tensor<T, 4> result({given.extent(0), given.extent(1), Tq, given.extent(3)});
  auto row = result.begin();
  for (Index at = 0; at < given.size(); at += given.extent(3)) {
    for (Index i = 0; i < Tq; ++i) row = std::copy_n(given.data() + at, given.extent(3), row);
  }
  return result;
}

DataType type_of(const ArrayMap& arrays, const CaseOverrides& overrides) {
  if (overrides.type) return *overrides.type;
  if (const std::optional<Index> bits = number<Index>(arrays, "significand_bits")) {
    for (const DataType type : {DataType::f64, DataType::f32, DataType::bf16, DataType::f16}) {
      if (diagnosis::rounding_of(type).bits == *bits) return type;
    }
    fail(kWhere, "significand_bits: expected 53 (f64), 24 (f32), 11 (f16) or 8 (bf16), got {}", *bits);
  }
  DataType coarsest = DataType::f64;
  for (const std::string_view name : {"q", "k", "v", "out"}) {
    const Array* array = find(arrays, name);
    if (array == nullptr) continue;
    const bool is_known = array->type == DataType::f64 || array->type == DataType::f32 ||
                          array->type == DataType::f16 || array->type == DataType::bf16;
    require(is_known, kWhere, "{}: expected f64, f32, bf16 or f16, or --dtype, got {}", name,
            heedful::name(array->type));
    if (diagnosis::rounding_of(array->type).bits < diagnosis::rounding_of(coarsest).bits) coarsest = array->type;
  }
  return coarsest;
}

void read_order(DeclaredAttention& declared, const ArrayMap& arrays) {
  constexpr std::array kAlignments = {Alignment::square, Alignment::top_left, Alignment::bottom_right,
                                      Alignment::offsets, Alignment::square};
  const Index causal = number<Index>(arrays, "causal").value_or(0);
  require(0 <= causal && causal < static_cast<Index>(kAlignments.size()), kWhere,
          "causal: expected 0 no, 1 top_left, 2 bottom_right, 3 offsets or 4 square, got {}", causal);
  declared.causal = causal > 0;
  declared.alignment = kAlignments[static_cast<std::size_t>(causal)];
  declared.window = number<Index>(arrays, "window").value_or(0);
  declared.query_offsets = numbers(arrays, "query_offsets");
  if (!declared.query_offsets.empty()) declared.alignment = Alignment::offsets;
}

// [B·T] from [B, T] or [T]: `count` of the last positions of each row, or the first.
std::vector<Index> positions_of(const Array& array, std::string_view name, Index B, Index count, bool last) {
  require(array.shape.size() == 1 || array.shape.size() == 2, kWhere, "{}: expected [B|1, T] or [T], got {}", name,
          array.shape_text());
  const Index rows = array.shape.size() == 2 ? array.shape[0] : 1, T = array.shape.back();
  require((rows == B || rows == 1) && T >= count, kWhere, "{}: expected [{} or 1, {}], got {}", name, B, count,
          array.shape_text());
  const std::vector<Index> all = to_vector<Index>(array, name);
  std::vector<Index> result;
  for (Index b = 0; b < B; ++b) {
    const auto row = all.begin() + (rows == 1 ? 0 : b * T);
    const auto from = last ? row + T - count : row;
    result.insert(result.end(), from, from + count);
  }
  return result;
}

bool has_positions(const ArrayMap& arrays) {
  return arrays.contains("positions") || arrays.contains("query_positions") || arrays.contains("key_positions");
}

DeclaredRotary read_rotary(const ArrayMap& arrays) {
  DeclaredRotary rotary;
  rotary.base = number<double>(arrays, "rotary_base").value_or(rotary.base);
  rotary.width = number<Index>(arrays, "rotary_width").value_or(0);
  if (number<Index>(arrays, "rotary_interleaved").value_or(0) != 0) rotary.layout = RotaryLayout::interleaved;
  return rotary;
}

void read_positions(AttentionCase& given, const ArrayMap& arrays) {
  const Array* both = find(arrays, "positions");
  const Array* query = both != nullptr ? both : find(arrays, "query_positions");
  const Array* key = both != nullptr ? both : find(arrays, "key_positions");
  require(query != nullptr && key != nullptr, kWhere,
          "positions: expected positions, or both query_positions and key_positions, got neither or one of them");
  const Alignment alignment = given.declared.alignment;
  require(both == nullptr || given.Tq() == given.Tk() || alignment == Alignment::top_left ||
              alignment == Alignment::bottom_right,
          kWhere,
          "positions: expected query_positions and key_positions where Tq = {} and Tk = {} differ, got positions",
          given.Tq(), given.Tk());
  given.declared.query_positions =
      positions_of(*query, "query positions", given.B(), given.Tq(), alignment == Alignment::bottom_right);
  given.declared.key_positions = positions_of(*key, "key positions", given.B(), given.Tk(), false);
}

// Rows [B, T] as one list, from [T] for all sequences too.
std::vector<Index> documents_of(const ArrayMap& arrays, std::string_view name, Index B, Index T) {
  const Array* array = find(arrays, name);
  return array == nullptr ? std::vector<Index>{} : positions_of(*array, name, B, T, false);
}

}  // namespace

ArrayMap read_arrays(const std::filesystem::path& path) {
  if (path.extension() == ".npz") return read_npz(path);
  require(path.extension() == ".safetensors", kWhere, "{}: expected a .npz or .safetensors file", path.string());
  return read_safetensors(path).arrays;
}

AttentionCase read_case(const ArrayMap& arrays, std::string_view name, const CaseOverrides& overrides) {
  refuse_unknown(arrays);
  const Declarations declarations(overrides.declared);
  AttentionCase given;
  given.name = name;
  const Array &q = at(arrays, "q"), &k = at(arrays, "k"), &v = at(arrays, "v");
  std::optional<Index> heads = declarations.heads(), kv_heads = declarations.kv_heads();
  const bool tokens_first = declarations.tokens_first();
  given.q = heads_first(q, "q", heads, tokens_first);
  if (!kv_heads && heads && k.shape.size() == 3 && given.D() > 0) kv_heads = k.shape.back() / given.D();
  given.k = heads_first(k, "k", kv_heads, tokens_first);
  given.v = heads_first(v, "v", kv_heads, tokens_first);
  if (const Array* dout = find(arrays, "dout")) given.dout = heads_first(*dout, "dout", heads, tokens_first);
  if (const Array* bias = find(arrays, "bias")) given.bias = shared<double>(*bias, "bias", given.Tq());
  if (const Array* mask = find(arrays, "mask")) {
    require(mask->type != DataType::f32 && mask->type != DataType::f64 && mask->type != DataType::f16 &&
                mask->type != DataType::bf16,
            kWhere, "mask: expected booleans, true = may look, got {}; name an additive mask bias",
            heedful::name(mask->type));
    given.keep = shared<bool>(*mask, "mask", given.Tq());
  }
  DeclaredAttention& declared = given.declared;
  declared.type = type_of(arrays, overrides);
  declared.scale = number<double>(arrays, "scale");
  declared.softcap = number<double>(arrays, "softcap").value_or(0);
  declared.key_lengths = numbers(arrays, "key_lengths");
  declared.left_padded = number<Index>(arrays, "left_padded").value_or(0) != 0;
  read_order(declared, arrays);
  declared.query_documents = documents_of(arrays, "query_documents", given.B(), given.Tq());
  declared.key_documents = documents_of(arrays, "key_documents", given.B(), given.Tk());
  if (has_positions(arrays)) declared.rotary = read_rotary(arrays);
  declarations.apply(declared);
  if (declared.rotary) read_positions(given, arrays);
  check_case(given);
  return given;
}

AttentionAnswer read_answer(const ArrayMap& arrays, const AttentionCase& given, const CaseOverrides& overrides) {
  const bool tokens_first = Declarations(overrides.declared).tokens_first();
  AttentionAnswer answer;
  const auto read = [&](std::string_view name, Index heads) {
    const Array* array = find(arrays, name);
    return array == nullptr ? Tensor<double, 4>() : heads_first(*array, name, heads, tokens_first);
  };
  at(arrays, "out");
  answer.out = read("out", given.H());
  answer.weights = read("weights", given.H());
  answer.dq = read("dq", given.H());
  answer.dk = read("dk", given.G());
  answer.dv = read("dv", given.G());
  if (const Array* lse = find(arrays, "lse")) answer.lse = to_tensor<double, 3>(*lse, "lse");
  check_answer(given, answer);
  return answer;
}

void add_answer(ArrayMap& arrays, ArrayMap answer) {
  at(answer, "out");
  for (const std::string_view name : kOutputs) {
    const auto found = answer.find(name);
    if (found != answer.end()) arrays.insert_or_assign(std::string(name), std::move(found->second));
  }
}

Observation read_observation(const ArrayMap& arrays, std::string_view name, const CaseOverrides& overrides) {
  Observation observation{read_case(arrays, name, overrides), {}};
  observation.answer = read_answer(arrays, observation.given, overrides);
  return observation;
}

}  // namespace heedful
