// The logits of a decoder with its cache and without: one pair of arrays, and what their difference says.
//
//     logits_cached, logits_uncached [B, T, V] or [T, V]
//
// What a whole decoder computes has no formula here, so σ is coarse: (8u + 64a) · the row's largest |logit|, u and a
// the roundoff of the type and of its accumulator. Between a few σ and a plain mistake lies nothing that is known: what
// fits no mistake by kMargin is reported where it is and not named.
#ifndef HEEDFUL_INSPECTION_DIAGNOSE_LOGITS_H_
#define HEEDFUL_INSPECTION_DIAGNOSE_LOGITS_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "heedful/inspection/diagnose.h"

namespace heedful {

struct LogitsPair {
  Tensor<double, 3> cached, uncached;  // [B, T, V]
  DataType type = DataType::f32;
};

struct LogitsDiagnosis {
  Verdict verdict = Verdict::unknown;
  std::string fault;  // logits_one_step_behind, …, where named
  std::string mistake, fix;
  bool bit_identical = false;
  double correct = 0;                       // residual of "the cache changes nothing"
  double next = 0;                          // of the best other explanation, or of the second best where one is named
  std::vector<Finding> residuals;           // of every explanation
  std::vector<std::string> excluded;        // explanations that the logits rule out
  std::vector<std::string> not_excluded;    // that would look the same
  Index sequence = 0, step = 0, token = 0;  // of the first wrong logit of the earliest wrong step
  double expected = 0, got = 0;
  Index wrong_steps = 0, steps = 0;
};

bool holds_logits(const ArrayMap& arrays);
LogitsPair read_logits(const ArrayMap& arrays, std::optional<DataType> type);

LogitsDiagnosis diagnose_logits(const LogitsPair& pair);
std::string logits_text(const LogitsDiagnosis& diagnosis);
nlohmann::json logits_json(const LogitsDiagnosis& diagnosis);

}  // namespace heedful

#endif  // HEEDFUL_INSPECTION_DIAGNOSE_LOGITS_H_
