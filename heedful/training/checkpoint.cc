#include "heedful/training/checkpoint.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "heedful/core/error.h"

namespace heedful {
namespace {

using nlohmann::json;

constexpr const char* kFormat = "checkpoint 1";
constexpr const char* kHash = "hash";
constexpr const char* kFirst = "adam.first.";
constexpr const char* kSecond = "adam.second.";

template <class T>
constexpr DataType data_type() {
  return sizeof(T) == 4 ? DataType::f32 : DataType::f64;
}

template <class T>
void put(ArrayMap& arrays, const std::string& prefix, const DecoderConfig& config, const Tensor<T, 1>& buffer) {
  for (const auto& entry : parameter_inventory(config)) {
    Array array = to_array(View<const T, 1>(buffer.data() + entry.offset, {entry.size()}));
    array.shape = entry.shape;
    arrays.emplace(prefix + entry.name, std::move(array));
  }
}

template <class T>
Tensor<T, 1> take(const ArrayMap& arrays, const std::string& prefix, const DecoderConfig& config) {
  Tensor<T, 1> buffer({parameter_count(config)});
  for (const auto& entry : parameter_inventory(config)) {
    const std::string name = prefix + entry.name;
    const Array& array = at(arrays, name);
    require(array.type == data_type<T>(), "checkpoint", "{}: expected numbers in {}, got {}", name,
            heedful::name(data_type<T>()), heedful::name(array.type));
    require(array.shape == entry.shape, "checkpoint", "{}: expected the shape [{}], got {}", name,
            fmt::join(entry.shape, ", "), array.shape_text());
    std::ranges::copy(to_vector<T>(array, name), buffer.data() + entry.offset);
  }
  return buffer;
}

json random_to_json(const Random& random) {
  const Random::State s = random.state();
  return {s.state_high, s.state_low, s.increment_high, s.increment_low, s.has_buffered, s.buffered};
}

// A whole number that Value holds; the library would round or wrap any other.
template <class Value>
Value whole(const json& j) {
  require(j.is_number_integer() && (j.is_number_unsigned() ? std::in_range<Value>(j.get<std::uint64_t>())
                                                           : std::in_range<Value>(j.get<std::int64_t>())),
          "checkpoint", "metadata: expected a whole number of its type, got {}", j.dump());
  return j.get<Value>();
}

Random random_from_json(const json& j) {
  Random random(0);
  const auto word = [&](std::size_t i) { return whole<std::uint64_t>(j.at(i)); };
  random.set_state({word(0), word(1), word(2), word(3), j.at(4), whole<std::uint32_t>(j.at(5))});
  return random;
}

const std::string& metadata(const Safetensors& file, const char* key) {
  const auto found = file.metadata.find(key);
  require(found != file.metadata.end(), "checkpoint", "not a heedful checkpoint: no \"{}\" in its metadata", key);
  return found->second;
}

Safetensors read(const std::filesystem::path& path) {
  Safetensors file = read_safetensors(path);
  require(metadata(file, "heedful") == kFormat, "checkpoint", "format: expected \"{}\", got \"{}\"", kFormat,
          metadata(file, "heedful"));
  require(metadata(file, kHash) == checkpoint_hash(file), "checkpoint",
          "{}: damaged: its contents have the hash {}, it names {}", path.string(), checkpoint_hash(file),
          shown(metadata(file, kHash)));
  return file;
}

// What nlohmann/json says of malformed metadata, as our Error.
template <class Read>
auto parse(const char* key, Read read) {
  try {
    return read();
  } catch (const json::exception& error) {
    fail("checkpoint", "{} in the metadata: {}", key, error.what());
  }
}

TrainOptions options_of(const Safetensors& file) {
  TrainOptions options = parse("options", [&] { return json::parse(metadata(file, "options")).get<TrainOptions>(); });
  validate(options);
  return options;
}

}  // namespace

std::string checkpoint_hash(const Safetensors& contents) {
  std::string all;
  const auto add = [&](std::string_view name, std::string_view bytes) {
    all += fmt::format("{:016x}{:016x}", hash_of(name), hash_of(bytes));
  };
  for (const auto& [name, array] : contents.arrays) add(name, as_text(array.bytes));
  for (const auto& [key, value] : contents.metadata) {
    if (key != kHash) add(key, value);
  }
  return fmt::format("{:016x}", hash_of(all));
}

template <class T>
void save_checkpoint(const std::filesystem::path& path, const TrainingState<T>& state) {
  Safetensors file;
  put(file.arrays, "", state.decoder.config, state.decoder.parameters);
  put(file.arrays, kFirst, state.decoder.config, state.first_moment);
  put(file.arrays, kSecond, state.decoder.config, state.second_moment);
  file.metadata = {{"heedful", kFormat},
                   {"options", json(state.options).dump()},
                   {"step", json(state.step).dump()},
                   {"loss", json(state.loss).dump()},
                   {"random", random_to_json(state.random).dump()}};
  if (state.best) file.metadata.emplace("best", json{state.best->step, state.best->loss}.dump());
  file.metadata.emplace(kHash, checkpoint_hash(file));
  std::error_code ignored;  // a first checkpoint has none before it
  const std::filesystem::path previous = path.string() + ".previous";
  std::filesystem::remove(previous, ignored);
  std::filesystem::create_hard_link(path, previous, ignored);
  write_safetensors(path, file);
}

template <class T>
TrainingState<T> load_checkpoint(const std::filesystem::path& path) {
  const Safetensors file = read(path);
  TrainingState<T> state;
  state.options = options_of(file);
  const Precision precision = sizeof(T) == 4 ? Precision::f32 : Precision::f64;
  require(state.options.precision == precision, "checkpoint", "precision: expected {}, got {}",
          enum_name<Precision>(precision, kPrecisionNames),
          enum_name<Precision>(state.options.precision, kPrecisionNames));
  state.decoder.config = state.options.model;
  state.decoder.parameters = take<T>(file.arrays, "", state.decoder.config);
  state.first_moment = take<T>(file.arrays, kFirst, state.decoder.config);
  state.second_moment = take<T>(file.arrays, kSecond, state.decoder.config);
  const std::size_t expected = 3 * parameter_inventory(state.decoder.config).size();
  require(file.arrays.size() == expected, "checkpoint", "arrays: expected {}, got {}", expected, file.arrays.size());
  state.step = parse("step", [&] { return whole<Index>(json::parse(metadata(file, "step"))); });
  state.loss = parse("loss", [&] { return json::parse(metadata(file, "loss")).get<double>(); });
  state.random = parse("random", [&] { return random_from_json(json::parse(metadata(file, "random"))); });
  if (file.metadata.contains("best")) {
    state.best = parse("best", [&] {
      const json best = json::parse(metadata(file, "best"));
      return BestScore{whole<Index>(best.at(0)), best.at(1)};
    });
  }
  require(state.step >= 0, "checkpoint", "step: expected 0 or more, got {}", state.step);
  return state;
}

TrainOptions load_checkpoint_options(const std::filesystem::path& path) {
  return options_of(read(path));
}

#define HEEDFUL_INSTANTIATE(T)                                                             \
  template void save_checkpoint<T>(const std::filesystem::path&, const TrainingState<T>&); \
  template TrainingState<T> load_checkpoint<T>(const std::filesystem::path&);
HEEDFUL_INSTANTIATE(float)
HEEDFUL_INSTANTIATE(double)
#undef HEEDFUL_INSTANTIATE

}  // namespace heedful
