#include "heedful/formats/safetensors.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "heedful/core/error.h"

namespace heedful {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the limit of the format's own reader
constexpr std::size_t kAlignment = 8;                   // of the first byte of data within the file
constexpr std::string_view kMetadata = "__metadata__";

constexpr std::array<std::pair<std::string_view, DataType>, 13> kTypeNames{{{"F64", DataType::f64},
                                                                            {"F32", DataType::f32},
                                                                            {"F16", DataType::f16},
                                                                            {"BF16", DataType::bf16},
                                                                            {"I64", DataType::i64},
                                                                            {"I32", DataType::i32},
                                                                            {"I16", DataType::i16},
                                                                            {"I8", DataType::i8},
                                                                            {"U64", DataType::u64},
                                                                            {"U32", DataType::u32},
                                                                            {"U16", DataType::u16},
                                                                            {"U8", DataType::u8},
                                                                            {"BOOL", DataType::boolean}}};

// A tensor of the header; its bytes are [begin, end) of the data.
struct Entry {
  std::string name;
  DataType type;
  std::vector<Index> shape;
  Index begin, end;
};

// What the JSON library has to say, less its own "[where] ".
std::string_view reason_of(const Json::exception& error) {
  const std::string_view reason = error.what();
  return reason.substr(std::min(reason.find("] "), reason.size() - 2) + 2);
}

// Parses JSON, refusing what the library would let pass: a key twice (it keeps the last) and depth without end.
Json parse_json(std::string_view text, std::string_view where) {
  constexpr int kMaxDepth = 4;  // {name: {shape: [ … ]}} is 3 deep
  std::vector<std::set<std::string, std::less<>>> open_objects;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    require(depth < kMaxDepth, where, "header: expected at most {} levels", kMaxDepth);
    if (event == Json::parse_event_t::object_start) open_objects.emplace_back();
    if (event == Json::parse_event_t::object_end) open_objects.pop_back();
    if (event == Json::parse_event_t::key) {
      const std::string key = parsed.get<std::string>();
      require(open_objects.back().insert(key).second, where, "header: expected every key once, got \"{}\" twice",
              key);
    }
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const Json::exception& error) {
    fail(where, "header: expected JSON: {}", reason_of(error));
  }
}

std::vector<Index> parse_sizes(const Json& json, std::string_view where) {
  require(json.is_array(), where, "expected a list of sizes, got {}", json.type_name());
  std::vector<Index> sizes;
  for (const Json& item : json) {
    require(item.is_number_unsigned() && std::in_range<Index>(item.get<std::uint64_t>()), where,
            "expected whole numbers from 0 to 2^63 − 1, got {}", item.dump(-1, ' ', true));
    sizes.push_back(item.get<Index>());
  }
  return sizes;
}

Entry parse_entry(const std::string& name, const Json& json, std::string_view file) {
  const std::string where = fmt::format("{}: {}", file, shown(name));
  require(json.is_object() && json.size() == 3 && json.contains("dtype") && json.contains("shape") &&
              json.contains("data_offsets"),
          where, "header: expected dtype, shape and data_offsets, nothing else");
  const Json& type = json["dtype"];
  require(type.is_string(), where, "dtype: expected a text, got {}", type.type_name());
  const auto* found = std::ranges::find(kTypeNames, type.get_ref<const std::string&>(),
                                        &std::pair<std::string_view, DataType>::first);
  require(found != kTypeNames.end(), where, "dtype: expected F16 to F64, BF16, I8 to I64, U8 to U64 or BOOL, got {}",
          shown(type.get_ref<const std::string&>()));

  Entry entry{name, found->second, parse_sizes(json["shape"], where + ": shape"), 0, 0};
  const std::vector<Index> offsets = parse_sizes(json["data_offsets"], where + ": data_offsets");
  require(offsets.size() == 2 && offsets[0] <= offsets[1], where,
          "data_offsets: expected a begin and a later end, got [{}]", fmt::join(offsets, ", "));
  entry.begin = offsets[0];
  entry.end = offsets[1];

  const Index bytes = array_size(entry.type, entry.shape, where).bytes;
  require(bytes == entry.end - entry.begin, where, "data_offsets: expected {} bytes for shape [{}], got {}", bytes,
          fmt::join(entry.shape, ", "), entry.end - entry.begin);
  return entry;
}

// Every byte of the data belongs to one tensor.
void check_coverage(std::vector<Entry>& entries, std::size_t data_bytes, std::string_view where) {
  std::ranges::sort(entries, {}, [](const Entry& entry) { return std::pair(entry.begin, entry.end); });
  Index covered = 0;
  for (const Entry& entry : entries) {
    require(entry.begin == covered, where, "data: expected {} to begin at byte {}, got {}", shown(entry.name),
            covered, entry.begin);
    covered = entry.end;
  }
  require(std::cmp_equal(covered, data_bytes), where, "data: expected {} bytes, got {}", covered, data_bytes);
}

std::vector<Entry> sorted_for_writing(const Safetensors& contents, std::string_view where) {
  std::vector<Entry> entries;
  for (const auto& [name, array] : contents.arrays) {
    require(name != kMetadata, where, "name: {} is not free for a tensor", kMetadata);
    check_size(array, fmt::format("{}: {}", where, shown(name)));
    entries.push_back({name, array.type, array.shape, 0, static_cast<Index>(array.bytes.size())});
  }
  // Wide types first: every tensor then starts on a multiple of its own element.
  std::ranges::sort(entries, {}, [](const Entry& entry) {
    return std::pair(-byte_size(entry.type), std::string_view(entry.name));
  });
  Index begin = 0;
  for (Entry& entry : entries) {
    entry.begin = std::exchange(begin, begin + entry.end);
    entry.end = begin;
  }
  return entries;
}

std::string header_text(const std::vector<Entry>& entries, const Safetensors& contents, std::string_view where) {
  Json header = Json::object();
  if (!contents.metadata.empty()) header[std::string(kMetadata)] = contents.metadata;
  for (const Entry& entry : entries) {
    const auto* type = std::ranges::find(kTypeNames, entry.type, &std::pair<std::string_view, DataType>::second);
    header[entry.name] = {{"dtype", type->first}, {"shape", entry.shape}, {"data_offsets", {entry.begin, entry.end}}};
  }
  try {
    std::string text = header.dump();
    text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
    require(text.size() <= kMaxHeaderBytes, where, "header: expected at most {} bytes, got {}", kMaxHeaderBytes,
            text.size());
    return text;
  } catch (const Json::exception& error) {
    fail(where, "header: expected names and metadata in UTF-8: {}", reason_of(error));
  }
}

}  // namespace

Safetensors parse_safetensors(Bytes file, std::string_view where) {
  ByteReader reader(file, std::string(where));
  const std::uint64_t header_bytes = reader.take_integer(8, "header length");
  require(header_bytes <= kMaxHeaderBytes, where, "header: expected at most {} bytes, got {}", kMaxHeaderBytes,
          header_bytes);
  const std::string_view text = as_text(reader.take(header_bytes, "header"));
  require(text.starts_with('{'), where, "header: expected it to begin with {{");
  const Json header = parse_json(text, where);
  const Bytes data = reader.rest();

  Safetensors contents;
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name != kMetadata) {
      entries.push_back(parse_entry(name, value, where));
      continue;
    }
    require(value.is_object(), where, "__metadata__: expected an object, got {}", value.type_name());
    for (const auto& [key, text_value] : value.items()) {
      require(text_value.is_string(), where, "__metadata__: {}: expected a text, got {}", shown(key),
              text_value.type_name());
      contents.metadata[key] = text_value.get<std::string>();
    }
  }
  check_coverage(entries, data.size(), where);
  for (Entry& entry : entries) {
    const Bytes bytes =
        data.subspan(static_cast<std::size_t>(entry.begin), static_cast<std::size_t>(entry.end - entry.begin));
    contents.arrays[entry.name] = {entry.type, std::move(entry.shape), {bytes.begin(), bytes.end()}};
  }
  return contents;
}

Safetensors read_safetensors(const std::filesystem::path& path, Index max_bytes) {
  return parse_safetensors(read_file(path, max_bytes), path.string());
}

void write_safetensors(const std::filesystem::path& path, const Safetensors& contents) {
  const std::string where = path.string();
  const std::vector<Entry> entries = sorted_for_writing(contents, where);
  const std::string text = header_text(entries, contents, where);
  const std::uint64_t length = text.size();
  std::vector<Bytes> parts{std::as_bytes(std::span(&length, 1)), as_bytes(text)};
  for (const Entry& entry : entries) parts.push_back(at(contents.arrays, entry.name).bytes);
  write_file(path, parts);
}

}  // namespace heedful
