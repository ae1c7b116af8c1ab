#include "heedful/inspection/diagnose_declared.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "heedful/core/error.h"

namespace heedful {
namespace {

template <class T>
T number(std::string_view key, std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc() && end == text.data() + text.size(), "declared", "{}: expected a number, got '{}'",
          key, text);
  return value;
}

template <class T>
struct Choice {
  std::string_view name;
  T value;
};

template <class T, std::size_t kCount>
T choose(std::string_view key, std::string_view text, const std::array<Choice<T>, kCount>& choices) {
  std::string known;
  for (const Choice<T>& choice : choices) {
    if (choice.name == text) return choice.value;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", choice.name);
  }
  fail("declared", "{}: expected one of {}, got '{}'", key, known, text);
}

constexpr std::array<Choice<Alignment>, 4> kAlignments{{{"square", Alignment::square},
                                                        {"top_left", Alignment::top_left},
                                                        {"bottom_right", Alignment::bottom_right},
                                                        {"offsets", Alignment::offsets}}};
constexpr std::array<Choice<EmptyRowValue>, 3> kEmptyRows{
    {{"zero", EmptyRowValue::zero}, {"nan", EmptyRowValue::nan}, {"mean", EmptyRowValue::mean}}};
constexpr std::array<Choice<bool>, 2> kSides{{{"right", false}, {"left", true}}};
constexpr std::array<Choice<bool>, 2> kAxes{{{"bhtd", false}, {"bthd", true}}};
constexpr std::array<Choice<RotaryLayout>, 2> kLayouts{
    {{"half", RotaryLayout::half_split}, {"interleaved", RotaryLayout::interleaved}}};

void set_causal(DeclaredAttention& declared, std::string_view text) {
  declared.causal = text != "none";
  if (declared.causal) declared.alignment = choose("causal", text, kAlignments);
}

void set_rotary(DeclaredAttention& declared, std::string_view text) {
  if (text == "none") {
    declared.rotary.reset();
    return;
  }
  if (!declared.rotary) declared.rotary.emplace();
  declared.rotary->layout = choose("rope", text, kLayouts);
}

DeclaredRotary& rotary_of(DeclaredAttention& declared, std::string_view key) {
  require(declared.rotary.has_value(), "declared", "{}: expected positions or rope= before it, got neither", key);
  return *declared.rotary;
}

using Setter = void (*)(DeclaredAttention&, std::string_view text);
constexpr std::array<Choice<Setter>, 12> kSetters{
    {{"causal", set_causal},
     {"scale",
      [](DeclaredAttention& d, std::string_view text) {
        d.scale = text == "default" ? std::nullopt : std::optional<double>(number<double>("scale", text));
      }},
     {"softcap", [](DeclaredAttention& d, std::string_view text) { d.softcap = number<double>("softcap", text); }},
     {"window", [](DeclaredAttention& d, std::string_view text) { d.window = number<Index>("window", text); }},
     {"padding",
      [](DeclaredAttention& d, std::string_view text) { d.left_padded = choose("padding", text, kSides); }},
     {"empty", [](DeclaredAttention& d, std::string_view text) { d.empty_row = choose("empty", text, kEmptyRows); }},
     {"rope", set_rotary},
     {"rope_base", [](DeclaredAttention& d,
                      std::string_view text) { rotary_of(d, "rope_base").base = number<double>("rope_base", text); }},
     {"rope_width",
      [](DeclaredAttention& d, std::string_view text) {
        rotary_of(d, "rope_width").width = number<Index>("rope_width", text);
      }},
     {"heads", [](DeclaredAttention&, std::string_view) {}},
     {"kv_heads", [](DeclaredAttention&, std::string_view) {}},
     {"layout", [](DeclaredAttention&, std::string_view) {}}}};

}  // namespace

Declarations::Declarations(std::string_view text) {
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view entry = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const std::size_t equals = entry.find('=');
    require(equals != std::string_view::npos, "declared", "entry: expected key=value, got '{}'", entry);
    const std::string_view key = entry.substr(0, equals), value = entry.substr(equals + 1);
    choose("key", key, kSetters);
    if (key == "heads") heads_ = number<Index>(key, value);
    if (key == "kv_heads") kv_heads_ = number<Index>(key, value);
    if (key == "layout") tokens_first_ = choose(key, value, kAxes);
    entries_.emplace_back(key, value);
  }
}

void Declarations::apply(DeclaredAttention& declared) const {
  for (const auto& [key, value] : entries_) choose("key", key, kSetters)(declared, value);
}

DataType parse_declared_type(std::string_view text) {
  constexpr std::array<Choice<DataType>, 4> kTypes{
      {{"f64", DataType::f64}, {"f32", DataType::f32}, {"bf16", DataType::bf16}, {"f16", DataType::f16}}};
  return choose("dtype", text, kTypes);
}

}  // namespace heedful
