// A diagnosis as one screen of text or as JSON: {verdict, fault, confidence, residuals, location, excluded,
// not_excluded, fix, …}.
#ifndef HEEDFUL_INSPECTION_DIAGNOSE_REPORT_H_
#define HEEDFUL_INSPECTION_DIAGNOSE_REPORT_H_

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "heedful/inspection/diagnose.h"

namespace heedful {

std::string diagnosis_text(const Diagnosis& diagnosis, std::span<const Observation> observations);
nlohmann::json diagnosis_json(const Diagnosis& diagnosis, std::span<const Observation> observations);

// Every fault of the catalogue: what it does, what it looks like, how it is put right.
std::string catalogue_text();
nlohmann::json catalogue_json();

}  // namespace heedful

#endif  // HEEDFUL_INSPECTION_DIAGNOSE_REPORT_H_
