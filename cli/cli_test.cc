#include <algorithm>
#include <chrono>
#include <set>
#include <sstream>
#include <vector>

#include "cli/run_program.h"

namespace heedful::cli {
namespace {

const char* const kSmall = "--task copy --length 3 --alphabet 5 --d-model 16 --heads 2 --batch 8 --steps 40 --seed 1";

std::vector<double> losses(const std::string& metrics) {
  std::vector<double> result;
  std::istringstream lines(metrics);
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    EXPECT_EQ(json["step"], result.size() + 1);
    result.push_back(json["loss"]);
  }
  return result;
}

using Program = ProgramTest;

TEST_F(Program, HelpNamesEveryCommandAndEachHasAnExample) {
  const Outcome help = run("--help");
  EXPECT_EQ(help.exit_code, 0);
  for (const char* command : {"train", "eval", "generate", "inspect", "gradcheck", "plan"}) {
    EXPECT_NE(help.out.find(command), std::string::npos) << command;
    const Outcome each = run(fmt::format("{} --help", command));
    EXPECT_EQ(each.exit_code, 0);
    EXPECT_NE(each.out.find(fmt::format("Example: heedful {}", command)), std::string::npos) << each.out;
  }
}

TEST_F(Program, TrainsEvaluatesAndLeavesARun) {
  const Outcome train = run(fmt::format("train {} --out run --json", kSmall));
  ASSERT_EQ(train.exit_code, 0) << train.err;
  const auto summary = train.json();
  for (const char* key :
       {"parameters", "steps", "final_loss", "accuracy_token", "accuracy_sequence", "seconds", "steps_per_second"}) {
    EXPECT_TRUE(summary.contains(key)) << key;
  }
  EXPECT_EQ(summary["steps"], 40);
  EXPECT_EQ(losses(text("run/metrics.jsonl")).size(), 40u);
  EXPECT_EQ(losses(text("run/metrics.jsonl")).back(), summary["final_loss"]);

  const auto eval = run("eval run --json").json();
  for (const char* key : {"parameters", "steps", "final_loss", "accuracy_token", "accuracy_sequence"}) {
    EXPECT_EQ(eval[key], summary[key]) << key;
  }
  EXPECT_GT(eval["seconds"], 0);
  EXPECT_EQ(run("eval run --samples 7 --seed 3").exit_code, 0);
}

TEST_F(Program, GeneratesTheSameBitsWithAndWithoutCache) {
  ASSERT_EQ(run(fmt::format("train {} --out run", kSmall)).exit_code, 0);
  for (const char* more : {"", "--temperature 0.9 --seed 5 --top-k 4 --top-p 0.9"}) {
    const Outcome with = run(fmt::format("generate run --prompt '4 0 2' --json {}", more));
    const Outcome without = run(fmt::format("generate run --prompt '4 0 2' --json --no-cache {}", more));
    EXPECT_EQ(with.out, without.out);
    EXPECT_EQ(with.json()["tokens"].size(), 3u);
    EXPECT_EQ(with.json()["logits"].size(), 3u);
    EXPECT_EQ(with.json()["logits"][0].size(), 6u);
  }
  EXPECT_EQ(run("generate run --prompt '4 0 2' --json --cache-type bf16").json()["tokens"].size(), 3u);
  expect_refused("generate run --prompt '4 0 2' --cache-type f8", "--cache-type: expected full|bf16");
  expect_refused("generate run --prompt '4 0 2' --cache-type bf16 --no-cache", "--no-cache excludes --cache-type");
  EXPECT_EQ(run("generate run --prompt '4 0 2 5'").out, run("generate run --prompt '4 0 2'").out);  // 5 separates
}

TEST_F(Program, StoppingAndGoingOnGivesTheSameRun) {
  ASSERT_EQ(run(fmt::format("train {} --out whole", kSmall)).exit_code, 0);
  ASSERT_EQ(run(fmt::format("train {} --steps 17 --out parts", kSmall)).exit_code, 0);
  const Outcome resumed = run("train --resume --steps 40 --out parts --json");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(losses(text("whole/metrics.jsonl")), losses(text("parts/metrics.jsonl")));
  EXPECT_EQ(text("whole/checkpoint.safetensors"), text("parts/checkpoint.safetensors"));
}

TEST_F(Program, AnInterruptKeepsWhatWasDone) {
  const std::string endless = fmt::format("train {} --steps 100000000 --out run", kSmall);
  // In the foreground: otherwise timeout signals its process and then its group, and a second interrupt saves nothing.
  const Outcome stopped = run(endless, "timeout --foreground --signal INT 2");
  EXPECT_TRUE(stopped.exit_code == 124 || stopped.exit_code == 130) << stopped.err;
  EXPECT_NE(stopped.err.find("--resume"), std::string::npos) << stopped.err;
  const auto done = losses(text("run/metrics.jsonl")).size();
  EXPECT_GT(done, 0u);
  EXPECT_EQ(run("eval run --json").json()["steps"], done);
}

TEST_F(Program, ASecondInterruptDoesNotWaitForTheStep) {
  const auto begin = std::chrono::steady_clock::now();
  run(fmt::format("train {} --length 100000 --steps 9 --out run", kSmall), "timeout -s TERM 3 timeout -s INT 1");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));  // the step takes minutes
}

TEST_F(Program, ATornMetricsFileAndALaterCheckpointAreMended) {
  ASSERT_EQ(run(fmt::format("train {} --steps 17 --out run", kSmall)).exit_code, 0);
  const std::string metrics = text("run/metrics.jsonl");
  write("run/metrics.jsonl", metrics + "{\"step\": 18, \"loss\": 1.0, \"seconds\": 1}\n{\"step\": 19, \"lo");
  ASSERT_EQ(run("train --resume --steps 20 --out run").exit_code, 0);
  EXPECT_EQ(losses(text("run/metrics.jsonl")).size(), 20u);
}

TEST_F(Program, ConfigFileAndFlagsMeanTheSame) {
  ASSERT_EQ(run(fmt::format("train {} --position rotary --activation swiglu --out a", kSmall)).exit_code, 0);
  ASSERT_EQ(run("train --config a/config.json --out b").exit_code, 0);
  EXPECT_EQ(text("a/checkpoint.safetensors"), text("b/checkpoint.safetensors"));
}

TEST_F(Program, NeverOverwritesARun) {
  ASSERT_EQ(run(fmt::format("train {} --out run", kSmall)).exit_code, 0);
  const std::string before = text("run/checkpoint.safetensors");
  expect_refused(fmt::format("train {} --seed 9 --out run", kSmall), "holds a run already");
  EXPECT_EQ(text("run/checkpoint.safetensors"), before);
}

TEST_F(Program, InspectsTheHeads) {
  ASSERT_EQ(run(fmt::format("train {} --out run", kSmall)).exit_code, 0);
  const auto inspected = run("inspect run --prompt '4 0 2' --json").json();
  EXPECT_EQ(inspected["tokens"].size(), 6u);
  EXPECT_EQ(inspected["pointers"].size(), 4u);
  EXPECT_EQ(inspected["pointers"][0]["keys"].size(), 3u);
}

TEST_F(Program, ChecksGradients) {
  const std::string flags = "gradcheck --length 2 --alphabet 3 --d-model 8 --heads 2 --json";
  const Outcome passed = run(flags);
  EXPECT_EQ(passed.exit_code, 0) << passed.err;
  const auto check = passed.json();
  for (const char* key : {"checked", "skipped", "kinks", "max_relative_deviation", "worst", "passed"}) {
    EXPECT_TRUE(check.contains(key)) << key;
  }
  EXPECT_TRUE(check["passed"]);
  EXPECT_GT(check["checked"], 100);
  // A tolerance that rounding cannot meet, and a step below every number: both must fail.
  EXPECT_EQ(run(flags + " --epsilon 1e-3 --tolerance 1e-12").exit_code, 1);
  EXPECT_EQ(run(flags + " --epsilon 1e-18").exit_code, 1);
}

TEST_F(Program, PlansTheSecondExercise) {
  const std::string flags = "plan --d-model 512 --heads 8 --layers 24 --context 8192 --batch 4 --dtype f16 --json";
  const auto plan = run(flags).json();
  EXPECT_EQ(plan["block_parameters"], 3'152'384);
  EXPECT_EQ(plan["total_parameters"], 75'657'216);
  EXPECT_EQ(plan["kv_cache_bytes"], 1'610'612'736);
  EXPECT_EQ(run(flags + " --kv-heads 1").json()["kv_cache_bytes"], 1'610'612'736 / 8);
  for (const char* key : {"parameter_bytes", "score_bytes", "flops_per_token"})
    EXPECT_TRUE(plan.contains(key)) << key;
}

TEST_F(Program, BadUsageIsOneLineAndExitCode2) {
  for (const auto& [arguments, part] : std::vector<std::pair<std::string, std::string>>{
           {"", "subcommand"},
           {"dance", "dance"},
           {"train --no-such-flag", "--no-such-flag"},
           {"train --length 0", "length"},
           {"train --length -3", "length"},
           {"train --length 2.5", "--length"},
           {"train --length 99999999999999999999", "--length: expected a whole number below 2^63"},
           {"train --length 010", "--length"},  // CLI11 would read 8
           {"train --length 0x6", "--length"},
           {"train --length ''", "--length"},  // CLI11 would take the default
           {"train --steps ' 6'", "--steps"},
           {"train --lr ''", "--lr"},
           {"train --lr 1e999", "--lr"},
           {"train --lr 0x1p-9", "--lr"},
           {"train --out ''", "--out"},
           {"train --corpus ''", "--corpus"},
           {"train --length x", "--length"},
           {"train --task sing", "copy|sort|reverse"},
           {"train --d-model 33", "divisor"},
           {"train --kv-heads 3", "kv_heads"},
           {"train --heads 0", "heads"},
           {"train --lr nan", "learning_rate"},
           {"train --lr -1", "learning_rate"},
           {"train --lr inf", "learning_rate"},
           {"train --seed -1", "--seed"},
           {"train --steps -5", "steps"},
           {"train --batch 0", "batch"},
           {"train --threads 0", "threads"},
           {"train --checkpoint-every 0", "--checkpoint-every"},
           {"train --precision f16", "f32|f64"},
           {"train --norm batch", "pre|post"},
           {"train --position middle", "learned|"},
           {"train --position rotary --d-model 12", "even head width"},
           {"train --d-model 262144 --layers 1000", "GiB"},
           {"train --seed 18446744073709551616", "--seed"},
           {"train --seed ''", "--seed"},
           {"train --resume", "--out"},
           {"train --resume --out nowhere", "no such folder"},
           {"train --config nowhere.json", "nowhere.json"},
           {"train --config /dev/zero", "16777216 bytes"},
           {"eval nowhere", "no such folder"},
           {"eval", "run"},
           {"generate nowhere --prompt 1", "no such folder"},
           {"gradcheck --coordinates some", "--coordinates"},
           {"gradcheck --coordinates 0", "--coordinates"},
           {"gradcheck --epsilon 0", "epsilon"},
           {"gradcheck --epsilon nan", "epsilon"},
           {"plan --dtype f8", "f64|f32|f16|bf16"},
           {"plan --batch 0", "batch"},
           {"plan --context 268435456 --batch 999999999 --layers 4096", "63 bits"},
       }) {
    expect_refused(arguments, part);
  }
}

TEST_F(Program, BadFilesAreOneLineAndExitCode2) {
  write("config.json", "{\"model\": {\"heads\": \"four\"}}");
  expect_refused("train --config config.json", "heads");
  write("config.json", "{]");
  expect_refused("train --config config.json", "not JSON");
  write("run/checkpoint.safetensors", "");
  expect_refused("eval run", "checkpoint");
  write("run/checkpoint.safetensors", std::string(8, '\xff') + "{}");
  expect_refused("eval run", "checkpoint");
  ASSERT_EQ(run(fmt::format("train {} --out good", kSmall)).exit_code, 0);
  const std::string good = text("good/checkpoint.safetensors");
  write("run/checkpoint.safetensors", good.substr(0, good.size() / 2));
  expect_refused("generate run --prompt 1", "checkpoint");
  expect_refused("generate good --prompt '1 9 2'", "expected symbols 0 to 4");
  expect_refused("generate good --prompt ' '", "at least one symbol");
  expect_refused("generate good --prompt '1 2 3' --tokens 5", "context");
  expect_refused("generate good --prompt '1 2 3' --tokens -1", "tokens: expected 0 to");
  expect_refused("generate good --prompt '1 2 3' --temperature nan", "temperature");
  expect_refused("generate good --prompt '1 2 3' --top-p 0", "top-p");
  expect_refused("train --resume --out good --lr 1", "--lr");
  expect_refused("train --resume --out good --steps 5", "40 already");
}

TEST_F(Program, UnwritablePlacesLoseNothing) {
  write("file", "");
  expect_refused(fmt::format("train {} --out file/run", kSmall), "cannot make the folder");
  // A file-size limit stands in for a full disk: the checkpoint before it must survive.
  ASSERT_EQ(run(fmt::format("train {} --out run", kSmall)).exit_code, 0);
  const std::string before = text("run/checkpoint.safetensors");
  expect_refused("train --resume --steps 60 --out run", "", "trap '' XFSZ; ulimit -f 8;");
  EXPECT_EQ(text("run/checkpoint.safetensors"), before);
  EXPECT_EQ(run("train --resume --steps 60 --out run").exit_code, 0);
}

TEST_F(Program, AFullOrClosedStdoutIsAnError) {
  for (const char* what : {"plan > /dev/full", "--help > /dev/full", "plan >&-", "plan > /dev/full 2>&-"}) {
    const std::string command = fmt::format("exec 2>/dev/null; '{}' {}", HEEDFUL_PROGRAM, what);
    EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 2) << what;
  }
}

TEST_F(Program, ClosedStreamsReachNoFileOfTheRun) {
  const std::string command =
      fmt::format("cd '{}' && '{}' train {} --out run <&- >&- 2>&-", folder_.string(), HEEDFUL_PROGRAM, kSmall);
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 2);  // there is nowhere to say how it went
  EXPECT_EQ(losses(text("run/metrics.jsonl")).size(), 40u);
  EXPECT_EQ(run("eval run").exit_code, 0);
}

TEST_F(Program, OneTrainingAtATimeInAFolder) {
  ASSERT_EQ(run(fmt::format("train {} --out run", kSmall)).exit_code, 0);
  const std::string before = text("run/checkpoint.safetensors");
  expect_refused("train --resume --steps 60 --out run", "another training", "flock run");
  std::filesystem::remove(folder_ / "run/checkpoint.safetensors");
  expect_refused(fmt::format("train {} --out run", kSmall), "another training", "flock run");
  write("run/checkpoint.safetensors", before);
  EXPECT_EQ(run("train --resume --steps 60 --out run").exit_code, 0);
}

}  // namespace
}  // namespace heedful::cli
