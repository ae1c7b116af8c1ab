// What a practitioner can measure on an attention with one of the nine traps in it, beside the same of a right one.
#ifndef HEEDFUL_INSPECTION_DIAGNOSE_TUTORIAL_SYMPTOMS_H_
#define HEEDFUL_INSPECTION_DIAGNOSE_TUTORIAL_SYMPTOMS_H_

#include <string>
#include <vector>

#include "heedful/inspection/diagnose_tutorial_model.h"

namespace heedful::diagnosis {

struct Symptom {
  std::string what, right, here;
};

struct Symptoms {
  std::vector<double> right_losses, losses;
  std::vector<Symptom> measured;
  std::vector<std::vector<double>> heat_map;  // weights of one head of a sequence with two padded keys
};

Symptoms measure_symptoms(Trap trap, std::uint64_t seed);

}  // namespace heedful::diagnosis

#endif  // HEEDFUL_INSPECTION_DIAGNOSE_TUTORIAL_SYMPTOMS_H_
