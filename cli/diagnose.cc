// heedful diagnose: which silent mistake does an implementation of attention contain?
#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/diagnose_command.h"
#include "heedful/core/error.h"
#include "heedful/inspection/diagnose_confusion.h"
#include "heedful/inspection/diagnose_declared.h"
#include "heedful/inspection/diagnose_logits.h"
#include "heedful/inspection/diagnose_probe_files.h"
#include "heedful/inspection/diagnose_probes.h"
#include "heedful/inspection/diagnose_report.h"
#include "heedful/inspection/diagnose_tutorial.h"

namespace heedful::cli {
namespace {

struct DiagnoseFlags {
  std::string path, declared, dtype, emit, command, features = "causal,padding,groups";
  std::string alignment = "bottom_right", rope = "half";
  std::uint64_t seed = 0;
  int threads = 2;
  std::size_t pairs = 0;
  bool list = false, json = false, confusion = false, tutorial = false;
};

int print(const Diagnosis& diagnosis, std::span<const Observation> observations, const DiagnoseFlags& flags) {
  if (flags.json) {
    fmt::print("{}\n", diagnosis_json(diagnosis, observations).dump(1));
  } else {
    fmt::print("{}", diagnosis_text(diagnosis, observations));
  }
  return diagnosis.is_correct() ? kDone : kFailed;
}

int print(const LogitsDiagnosis& diagnosis, const DiagnoseFlags& flags) {
  fmt::print("{}", flags.json ? logits_json(diagnosis).dump(1) + "\n" : logits_text(diagnosis));
  return diagnosis.verdict == Verdict::correct ? kDone : kFailed;
}

ProbeOptions probe_options(const DiagnoseFlags& flags) {
  ProbeOptions options;
  options.features = parse_features(flags.features);
  options.type = flags.dtype.empty() ? DataType::f32 : parse_declared_type(flags.dtype);
  DeclaredAttention said;
  Declarations("causal=" + flags.alignment + ",rope=" + flags.rope).apply(said);
  options.alignment = said.alignment;
  require(said.rotary.has_value() &&
              (options.alignment == Alignment::top_left || options.alignment == Alignment::bottom_right),
          "diagnose",
          "probes: expected --alignment top_left or bottom_right and --rope half or interleaved, got {}, {}",
          flags.alignment, flags.rope);
  options.layout = said.rotary->layout;
  options.seed = flags.seed;
  return options;
}

std::vector<AttentionCase> probes_of(const DiagnoseFlags& flags) {
  const Declarations declared(flags.declared);
  require(!declared.heads() && !declared.kv_heads() && !declared.tokens_first(), "diagnose",
          "declared: expected no heads=, kv_heads= or layout= for probes, which are [B, heads, T, width], got '{}'",
          flags.declared);
  std::vector<AttentionCase> probes = standard_probes(probe_options(flags));
  for (AttentionCase& probe : probes) {
    declared.apply(probe.declared);
    check_case(probe);
  }
  return probes;
}

int emit_probes(const DiagnoseFlags& flags) {
  const std::vector<AttentionCase> probes = probes_of(flags);
  write_probes(flags.emit, probes);
  fmt::print("{} probes and a README.md in {}; save each answer as <name>.out.npz, then: heedful diagnose {}\n",
             probes.size(), flags.emit, flags.emit);
  return kDone;
}

int judge_files(const Context& context, const DiagnoseFlags& flags) {
  CaseOverrides overrides;
  if (!flags.dtype.empty()) overrides.type = parse_declared_type(flags.dtype);
  overrides.declared = flags.declared;
  require(std::filesystem::exists(flags.path), "diagnose", "{}: expected a file or a folder, got nothing there",
          flags.path);
  if (std::filesystem::is_directory(flags.path)) {
    const ProbeAnswers answers = read_probes(flags.path, overrides);
    Diagnosis diagnosis = diagnose(context, answers.observations);
    if (!answers.unanswered.empty()) {
      diagnosis.notes.push_back(fmt::format("no answer beside {}", fmt::join(answers.unanswered, ", ")));
    }
    return print(diagnosis, answers.observations, flags);
  }
  const ArrayMap arrays = read_arrays(flags.path);
  if (holds_logits(arrays)) return print(diagnose_logits(read_logits(arrays, overrides.type)), flags);
  std::vector<Observation> observations;
  observations.push_back(read_observation(arrays, std::filesystem::path(flags.path).stem().string(), overrides));
  return print(diagnose(context, observations), observations, flags);
}

int judge_command(const Context& context, const DiagnoseFlags& flags) {
  const ProgramUnderTest program(flags.command);
  std::vector<Observation> observations;
  for (AttentionCase& probe : probes_of(flags)) {
    AttentionAnswer answer = program.answer(probe);
    observations.push_back({std::move(probe), std::move(answer)});
  }
  return print(diagnose(context, observations), observations, flags);
}

int list_catalogue(const DiagnoseFlags& flags) {
  if (flags.json) {
    fmt::print("{}\n", catalogue_json().dump(1));
  } else {
    fmt::print("{}", catalogue_text());
  }
  return kDone;
}

int print_confusion(const Context& context, const DiagnoseFlags& flags) {
  const DataType type = flags.dtype.empty() ? DataType::f32 : parse_declared_type(flags.dtype);
  const std::vector<DataType> types =
      flags.dtype.empty() ? std::vector{DataType::f32, DataType::f16, DataType::bf16} : std::vector{type};
  const Confusion confusion =
      flags.pairs > 0 ? confuse_pairs(context, type, 0, flags.pairs) : confuse_singles(context, types);
  fmt::print("{}", confusion_text(confusion));
  for (const ConfusionRow& row : confusion.rows) {
    if (row.outcome == Outcome::mistaken) return kFailed;
  }
  return kDone;
}

int teach(const DiagnoseFlags& flags) {
  run_tutorial(std::cin, std::cout, flags.seed);
  return kDone;
}

int run(const DiagnoseFlags& flags) {
  const int jobs = int{flags.list} + int{flags.confusion} + int{flags.tutorial} + int{!flags.emit.empty()} +
                   int{!flags.command.empty()} + int{!flags.path.empty()};
  require(jobs == 1, "diagnose",
          "expected one of CASE, --emit-probes, --command, --list, --confusion and --tutorial, got {}", jobs);
  const Context context(flags.threads);
  if (flags.list) return list_catalogue(flags);
  if (flags.tutorial) return teach(flags);
  if (flags.confusion) return print_confusion(context, flags);
  if (!flags.emit.empty()) return emit_probes(flags);
  if (!flags.command.empty()) return judge_command(context, flags);
  return judge_files(context, flags);
}

}  // namespace

void add_diagnose(CLI::App& app, int& exit_code) {
  const auto flags = std::make_shared<DiagnoseFlags>();
  CLI::App* command = app.add_subcommand(
      "diagnose", "Name the silent mistake in an implementation of attention from what it computed.");
  command->add_option("case", flags->path, "a case, .npz or .safetensors, or a folder of probes and answers");
  command->add_option(
      "--declared", flags->declared,
      "what was meant: causal=none|square|top_left|bottom_right, scale=default|X, softcap=X, window=W,\n"
      "padding=right|left, rope=half|interleaved|none, rope_base=X, rope_width=R, heads=H, kv_heads=G,\n"
      "layout=bhtd|bthd, empty=zero|nan|mean");
  command->add_option("--dtype", flags->dtype,
                      "the type it computes in, f64, f32, bf16 or f16; otherwise the coarsest of q, k, v and out");
  command->add_option("--emit-probes", flags->emit, "write designed inputs into this folder");
  command->add_option("--command", flags->command,
                      "run this on every probe; IN.npz and OUT.npz in it stand for files");
  command
      ->add_option(
          "--features", flags->features,
          "what the probes may use: causal, padding, left_padding, groups, window, offsets, empty_rows, scale,\n"
          "softcap, bias, mask, documents, rotary, gradients, or all of these; and hidden_nan, NaN behind\n"
          "the mask")
      ->capture_default_str();
  command->add_option("--alignment", flags->alignment, "of causal probes with Tq ≠ Tk")->capture_default_str();
  command->add_option("--rope", flags->rope, "layout of rotary probes")->capture_default_str();
  command->add_option("--seed", flags->seed, "of the probes")->capture_default_str();
  command->add_option("--threads", flags->threads, "threads")->capture_default_str();
  command->add_flag("--list", flags->list, "the catalogue of faults");
  command->add_flag("--confusion", flags->confusion, "how well every fault is told from the others, in each type");
  command->add_option("--pairs", flags->pairs, "with --confusion: every N-th pair of faults instead");
  command->add_flag("--tutorial", flags->tutorial, "nine traps as exercises, answered on stdin");
  command->add_flag("--json", flags->json, "the verdict as JSON");
  command->footer(
      "A case holds arrays q [B, H, Tq, D], k [B, G, Tk, D], v [B, G, Tk, E], the output out [B, H, Tq, E], and what "
      "was\n"
      "meant: causal (1 top_left, 2 bottom_right), key_lengths, mask (true = may look), window, … "
      "(docs/diagnosis.md).\n"
      "Exit code: 0 correct, 1 a fault or unknown, 2 bad input.\n\n"
      "Examples: heedful diagnose --emit-probes probes && python3 answer_them.py && heedful diagnose probes\n"
      "          heedful diagnose --command 'python3 my_attention.py IN.npz OUT.npz'\n"
      "          heedful diagnose case.npz --declared causal=top_left --dtype bf16");
  command->callback([flags, &exit_code] { exit_code = run(*flags); });
}

}  // namespace heedful::cli
