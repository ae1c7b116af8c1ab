// The catalogue of silent mistakes: each is one small named function that spoils one step of the recipe of attention
// (diagnose_simulation.h), so that the mistake can be read as code. None of them raises an exception in the wild:
// shapes match and the loss falls.
//
// The same catalogue serves three ends: `diagnose` simulates every fault to name the one in someone else's code, the
// tests of our own attention must tell every one of them from what we compute, and the tutorial hides them.
#ifndef HEEDFUL_INSPECTION_FAULTS_H_
#define HEEDFUL_INSPECTION_FAULTS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heedful/inspection/diagnose_simulation.h"

namespace heedful::diagnosis {

enum class Group {
  scale,
  mask,
  causal,
  padding,
  softmax,
  heads,
  groups,
  cache,
  position,
  window,
  online,
  numerics,
  gradients
};
std::string_view name(Group group);

// What a fault touches. Two faults that touch the same cannot be had at once.
using Touches = std::uint32_t;
inline constexpr Touches kScale = 1u << 0;
inline constexpr Touches kHeadMap = 1u << 1;
inline constexpr Touches kQueries = 1u << 2;
inline constexpr Touches kKeys = 1u << 3;
inline constexpr Touches kValues = 1u << 4;
inline constexpr Touches kPosition = 1u << 5;
inline constexpr Touches kCausal = 1u << 6;
inline constexpr Touches kWindow = 1u << 7;
inline constexpr Touches kPadding = 1u << 8;
inline constexpr Touches kKeep = 1u << 9;
inline constexpr Touches kRotation = 1u << 10;
inline constexpr Touches kScores = 1u << 11;
inline constexpr Touches kCap = 1u << 12;
inline constexpr Touches kBias = 1u << 13;
inline constexpr Touches kHide = 1u << 14;
inline constexpr Touches kNormalize = 1u << 15;
inline constexpr Touches kMix = 1u << 16;
inline constexpr Touches kMerge = 1u << 17;
inline constexpr Touches kEmptyRow = 1u << 18;
inline constexpr Touches kDocuments = 1u << 19;
inline constexpr Touches kLogSumExp = 1u << 20;
inline constexpr Touches kRecompute = 1u << 21;  // from here on: the backward pass
inline constexpr Touches kValueGradient = 1u << 22;
inline constexpr Touches kRowSum = 1u << 23;
inline constexpr Touches kScoreGradient = 1u << 24;
inline constexpr Touches kQueryGradient = 1u << 25;
inline constexpr Touches kKeyGradient = 1u << 26;
inline constexpr Touches kGather = 1u << 27;
inline constexpr Touches kUnrotate = 1u << 28;

using Spoil = std::function<void(Recipe&)>;

// One form of a fault: most have one, some depend on a number that we cannot know, such as a block length.
struct Variant {
  std::string label;  // empty, or "blocks of 16"
  Spoil spoil;
  bool (*applies)(const AttentionCase&) = nullptr;
};

struct Fault {
  std::string_view name;
  Group group;
  Touches touches;
  std::string_view mistake;  // what the code does
  std::string_view tell;     // what gives it away
  std::string_view fix;      // one sentence
  std::vector<Variant> variants;
  bool (*applies)(const AttentionCase&) = nullptr;  // where not, the mistake cannot give an answer of the right shape

  Fault(std::string_view fault_name, Group fault_group, Touches fault_touches, void (*spoil)(Recipe&),
        std::string_view what, std::string_view how_told, std::string_view how_fixed,
        bool (*where)(const AttentionCase&) = nullptr);
  Fault(std::string_view fault_name, Group fault_group, Touches fault_touches, std::vector<Variant> forms,
        std::string_view what, std::string_view how_told, std::string_view how_fixed,
        bool (*where)(const AttentionCase&) = nullptr);

  bool is_backward() const { return touches >= kRecompute; }
};

// All of them, forward faults first, in the order of the groups. Names are unique.
const std::vector<Fault>& catalogue();

// Throws Error where no fault has this name.
const Fault& find_fault(std::string_view name);

// A copy of the correct recipe with the fault in it.
Recipe spoilt(const DeclaredAttention& declared, const Variant& variant);

// The parts of the catalogue.
std::vector<Fault> scale_faults();
std::vector<Fault> mask_faults();
std::vector<Fault> causal_faults();
std::vector<Fault> padding_faults();
std::vector<Fault> softmax_faults();
std::vector<Fault> head_faults();
std::vector<Fault> cache_faults();
std::vector<Fault> position_faults();
std::vector<Fault> window_faults();
std::vector<Fault> online_faults();
std::vector<Fault> numeric_faults();
std::vector<Fault> gradient_faults();
std::vector<Fault> gradient_kernel_faults();

}  // namespace heedful::diagnosis

#endif  // HEEDFUL_INSPECTION_FAULTS_H_
