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
enum Touches : std::uint32_t {
  kScale = 1u << 0,
  kHeadMap = 1u << 1,
  kQueries = 1u << 2,
  kKeys = 1u << 3,
  kValues = 1u << 4,
  kPosition = 1u << 5,
  kCausal = 1u << 6,
  kWindow = 1u << 7,
  kPadding = 1u << 8,
  kKeep = 1u << 9,
  kRotation = 1u << 10,
  kScores = 1u << 11,
  kCap = 1u << 12,
  kBias = 1u << 13,
  kHide = 1u << 14,
  kNormalize = 1u << 15,
  kMix = 1u << 16,
  kMerge = 1u << 17,
  kEmptyRow = 1u << 18,
  kDocuments = 1u << 19,
  kLogSumExp = 1u << 20,
  kRecompute = 1u << 21,  // from here on: the backward pass
  kValueGradient = 1u << 22,
  kRowSum = 1u << 23,
  kScoreGradient = 1u << 24,
  kQueryGradient = 1u << 25,
  kKeyGradient = 1u << 26,
  kGather = 1u << 27,
  kUnrotate = 1u << 28,
};

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
  std::uint32_t touches;
  std::string_view mistake;  // what the code does
  std::string_view tell;     // what gives it away
  std::string_view fix;      // one sentence
  std::vector<Variant> variants;
  bool (*applies)(const AttentionCase&) = nullptr;  // where not, the mistake cannot give an answer of the right shape

  Fault(std::string_view fault_name, Group fault_group, std::uint32_t fault_touches, void (*spoil)(Recipe&),
        std::string_view what, std::string_view how_told, std::string_view how_fixed,
        bool (*where)(const AttentionCase&) = nullptr);
  Fault(std::string_view fault_name, Group fault_group, std::uint32_t fault_touches, std::vector<Variant> forms,
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
