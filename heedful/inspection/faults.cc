#include "heedful/inspection/faults.h"

#include <algorithm>
#include <iterator>

namespace heedful::diagnosis {

std::string_view name(Group group) {
  switch (group) {
    case Group::scale:
      return "scale";
    case Group::mask:
      return "mask";
    case Group::causal:
      return "causal";
    case Group::padding:
      return "padding";
    case Group::softmax:
      return "softmax";
    case Group::heads:
      return "heads";
    case Group::groups:
      return "groups";
    case Group::cache:
      return "cache";
    case Group::position:
      return "position";
    case Group::window:
      return "window";
    case Group::online:
      return "online softmax";
    case Group::numerics:
      return "numerics";
    case Group::gradients:
      return "gradients";
  }
  fail("diagnose", "no such group");
}

Fault::Fault(std::string_view fault_name, Group fault_group, Touches fault_touches, void (*spoil)(Recipe&),
             std::string_view what, std::string_view how_told, std::string_view how_fixed,
             bool (*where)(const AttentionCase&))
    : Fault(fault_name, fault_group, fault_touches, std::vector<Variant>{{"", spoil}}, what, how_told, how_fixed,
            where) {}

Fault::Fault(std::string_view fault_name, Group fault_group, Touches fault_touches, std::vector<Variant> forms,
             std::string_view what, std::string_view how_told, std::string_view how_fixed,
             bool (*where)(const AttentionCase&))
    : name(fault_name),
      group(fault_group),
      touches(fault_touches),
      mistake(what),
      tell(how_told),
      fix(how_fixed),
      variants(std::move(forms)),
      applies(where) {}

const std::vector<Fault>& catalogue() {
  static const std::vector<Fault> all = [] {
    std::vector<Fault> result;
    for (const auto& part :
         {scale_faults, mask_faults, causal_faults, padding_faults, softmax_faults, head_faults, cache_faults,
          position_faults, window_faults, online_faults, numeric_faults, gradient_faults, gradient_kernel_faults}) {
      std::ranges::move(part(), std::back_inserter(result));
    }
    return result;
  }();
  return all;
}

const Fault& find_fault(std::string_view name) {
  const auto found = std::ranges::find(catalogue(), name, &Fault::name);
  require(found != catalogue().end(), "diagnose", "fault: expected a name of the catalogue, got '{}'", name);
  return *found;
}

Recipe spoilt(const DeclaredAttention& declared, const Variant& variant) {
  Recipe recipe = correct_recipe(declared);
  variant.spoil(recipe);
  return recipe;
}

}  // namespace heedful::diagnosis
