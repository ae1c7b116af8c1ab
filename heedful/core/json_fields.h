// Reading and writing a struct as a JSON object, strictly: unknown keys, other types and fractions where a whole
// number belongs throw Error. A struct lists its fields once, in a function that is called with a FieldWriter or
// FieldReader:
//
//     template <class Fields, class Config>
//     void fields(Fields& f, Config& config) { f("heads", config.heads); f("norm", config.norm, kNormNames); }
#ifndef HEEDFUL_CORE_JSON_FIELDS_H_
#define HEEDFUL_CORE_JSON_FIELDS_H_

#include <nlohmann/json.hpp>

#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "heedful/core/enum_names.h"
#include "heedful/core/error.h"

namespace heedful {

class FieldWriter {
 public:
  explicit FieldWriter(nlohmann::json& json) : json_(json) { json_ = nlohmann::json::object(); }
  template <class Value>
  void operator()(const char* key, const Value& value) {
    json_[key] = value;
  }
  template <class Enum, std::size_t N>
  void operator()(const char* key, const Enum& value, const EnumName<Enum> (&names)[N]) {
    json_[key] = std::string(enum_name(value, std::span<const EnumName<Enum>>(names)));
  }

 private:
  nlohmann::json& json_;
};

class FieldReader {
 public:
  FieldReader(const nlohmann::json& json, std::string_view where) : json_(json), where_(where) {
    require(json.is_object(), where_, "expected a JSON object, got {}", json.type_name());
  }
  template <class Value>
  void operator()(const char* key, Value& value) {
    const nlohmann::json* found = find(key);
    if (found == nullptr) return;
    if constexpr (std::is_same_v<Value, bool>) {
      require(found->is_boolean(), where_, "{}: expected true or false, got {}", key, found->dump());
    } else if constexpr (std::is_integral_v<Value>) {
      require(found->is_number_integer(), where_, "{}: expected a whole number, got {}", key, found->dump());
      require(std::is_signed_v<Value> || found->is_number_unsigned(), where_, "{}: expected 0 or more, got {}", key,
              found->dump());
      require(!found->is_number_unsigned() || std::in_range<Value>(found->get<std::uint64_t>()), where_,
              "{}: {} is too large", key, found->dump());
    } else if constexpr (std::is_floating_point_v<Value>) {
      require(found->is_number(), where_, "{}: expected a number, got {}", key, found->dump());
    } else {
      require(found->is_string(), where_, "{}: expected a text, got {}", key, found->dump());
    }
    value = found->get<Value>();
  }
  template <class Enum, std::size_t N>
  void operator()(const char* key, Enum& value, const EnumName<Enum> (&names)[N]) {
    const nlohmann::json* found = find(key);
    if (found == nullptr) return;
    require(found->is_string(), where_, "{}: expected {}, got {}", key,
            enum_choices<Enum>(std::span<const EnumName<Enum>>(names)), found->dump());
    value = enum_value<Enum>(found->get<std::string>(), where_, key, std::span<const EnumName<Enum>>(names));
  }
  // Called last: a key that no field asked for is a mistake in the file.
  void refuse_unknown() const {
    for (const auto& [key, value] : json_.items()) {
      require(known_.contains(key), where_, "unknown key \"{}\"", key);
    }
  }

 private:
  const nlohmann::json* find(const char* key) {
    known_.insert(key);
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }
  const nlohmann::json& json_;
  std::string where_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace heedful

#endif  // HEEDFUL_CORE_JSON_FIELDS_H_
