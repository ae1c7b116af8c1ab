// Probes as files: <name>.npz for each, in the arrays that diagnose_file.h names, and the answers beside them in
// <name>.out.npz or <name>.out.safetensors.
#ifndef HEEDFUL_INSPECTION_DIAGNOSE_PROBE_FILES_H_
#define HEEDFUL_INSPECTION_DIAGNOSE_PROBE_FILES_H_

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "heedful/inspection/diagnose_file.h"

namespace heedful {

// Everything of the case: f64 as f64, all other types as f32, in which their numbers are exact.
ArrayMap case_arrays(const AttentionCase& given);
ArrayMap answer_arrays(const AttentionAnswer& answer, DataType type);

// Writes every probe and a README.md that says what to do with them. The folder is made where it is missing.
void write_probes(const std::filesystem::path& folder, std::span<const AttentionCase> probes);

struct ProbeAnswers {
  std::vector<Observation> observations;
  std::vector<std::string> unanswered;  // probes without an answer beside them
};

// Throws Error where no probe has an answer.
ProbeAnswers read_probes(const std::filesystem::path& folder, const CaseOverrides& overrides);

}  // namespace heedful

#endif  // HEEDFUL_INSPECTION_DIAGNOSE_PROBE_FILES_H_
