#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/run_program.h"
#include "heedful/formats/npz.h"
#include "heedful/inspection/diagnose_probe_files.h"
#include "heedful/inspection/diagnose_probes.h"

namespace heedful::cli {
namespace {

class Diagnose : public ProgramTest {
 protected:
  // Answers the probes in their folder with the given faults.
  void answer(const std::string& folder, const std::vector<std::string>& faults,
              const ProbeOptions& options = {}) const {
    for (const AttentionCase& probe : standard_probes(options)) {
      AttentionAnswer answer;
      answer.out = simulate(probe, faults).out.copy();
      write_npz(folder_ / folder / (probe.name + ".out.npz"), answer_arrays(answer, DataType::f32));
    }
  }
};

TEST_F(Diagnose, ProbesGoOutAndAVerdictComesBack) {
  EXPECT_EQ(run("diagnose --emit-probes probes").exit_code, 0);
  expect_refused("diagnose probes", "expected answers");
  answer("probes", {"padding_missing"});
  const Outcome wrong = run("diagnose probes");
  EXPECT_EQ(wrong.exit_code, 1) << wrong.err;
  EXPECT_EQ(wrong.out.find("verdict      padding_missing"), 0u) << wrong.out;
  EXPECT_LE(std::ranges::count(wrong.out, '\n'), 24);
  EXPECT_EQ(run("diagnose probes --json").json()["fault"], "padding_missing");
  answer("probes", {});
  EXPECT_EQ(run("diagnose probes").exit_code, 0);
}

TEST_F(Diagnose, OneCaseInOneFile) {
  ArrayMap arrays = case_arrays(square_case({}));
  AttentionAnswer answered;
  answered.out = simulate(square_case({}), std::vector<std::string>{"softmax_over_queries"}).out.copy();
  arrays.merge(answer_arrays(answered, DataType::f32));
  write_npz(folder_ / "case.npz", arrays);
  EXPECT_EQ(run("diagnose case.npz --json").json()["fault"], "softmax_over_queries");
  expect_refused("diagnose case.npz --declared window=-1", "window: expected at least 0");
  expect_refused("diagnose case.npz --dtype f8", "dtype: expected one of");
  expect_refused("diagnose missing.npz", "missing.npz");
  write("case.txt", "q k v");
  expect_refused("diagnose case.txt", ".npz or .safetensors");
  expect_refused("diagnose", "expected one of CASE");
  expect_refused("diagnose case.npz --list", "got 2");
  expect_refused("diagnose --emit-probes p --features wings", "features: expected some of all");
}

TEST_F(Diagnose, DrivesAProgram) {
  answer("", {"heads_reversed"});
  // A program that has the answers ready.
  const Outcome outcome = run("diagnose --json --command 'cp $(basename IN.npz .npz).out.npz OUT.npz'");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_EQ(outcome.json()["fault"], "heads_reversed");
  expect_refused("diagnose --command 'exit 3 # IN.npz OUT.npz'", "expected exit code 0 on probe 'grouped', got 3");
  expect_refused("diagnose --command 'true IN.npz OUT.npz'", "no file for probe");
  expect_refused("diagnose --command true", "command: expected IN.npz and OUT.npz");
}

TEST_F(Diagnose, WhatIsDeclaredHoldsForTheProbesToo) {
  ProbeOptions options;
  options.features.empty_rows = true;
  answer("", {"empty_row_nan"}, options);
  const std::string command =
      "diagnose --json --features causal,padding,groups,empty_rows "
      "--command 'cp $(basename IN.npz .npz).out.npz OUT.npz'";
  EXPECT_EQ(run(command).json()["fault"], "empty_row_nan");
  EXPECT_EQ(run(command + " --declared empty=nan").exit_code, 0);
  expect_refused(command + " --declared layout=bthd", "for probes, which are [B, heads, T, width]");
}

TEST_F(Diagnose, ListsAndTeaches) {
  EXPECT_NE(run("diagnose --list").out.find("mask_after_softmax"), std::string::npos);
  EXPECT_GE(run("diagnose --list --json").json().size(), 80u);
  write("answers", "h q\n");
  const Outcome lesson = run("diagnose --tutorial --seed 4 <answers");
  EXPECT_EQ(lesson.exit_code, 0);
  EXPECT_NE(lesson.out.find("of 1 named."), std::string::npos) << lesson.out;
  EXPECT_EQ(lesson.out, run("diagnose --tutorial --seed 4 <answers").out);
}

TEST_F(Diagnose, TheCacheOfADecoder) {
  Tensor<float, 3> logits({1, 3, 2});
  for (Index at = 0; at < logits.size(); ++at) logits.data()[at] = static_cast<float>(at * at);
  ArrayMap arrays;
  arrays.emplace("logits_uncached", to_array(logits));
  arrays.emplace("logits_cached", to_array(logits));
  write_npz(folder_ / "same.npz", arrays);
  EXPECT_EQ(run("diagnose same.npz").exit_code, 0);
  logits(0, 2, 1) += 1;
  arrays.at("logits_cached") = to_array(logits);
  write_npz(folder_ / "other.npz", arrays);
  EXPECT_EQ(run("diagnose other.npz").exit_code, 1);
  EXPECT_EQ(run("diagnose other.npz --json").json()["location"]["step"], 2);
}

}  // namespace
}  // namespace heedful::cli
