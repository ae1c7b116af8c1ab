// Runs on text, as a person would have them.
#include <cmath>
#include <sstream>
#include <vector>

#include "cli/run_program.h"

namespace heedful::cli {
namespace {

// A hundred lines that differ, in a small alphabet with one letter of two bytes.
std::string rhymes() {
  std::string text;
  for (int i = 0; i < 100; ++i) {
    text += fmt::format("the {} crow told {} the é of {}\n", i * 7 % 13, i * 5 % 11, i);
  }
  return text;
}

const char* const kSmall =
    "--context 16 --d-model 16 --heads 2 --layers 1 --batch 4 --steps 40 --evaluate-every 10 --evaluate-windows 4";

class TextProgram : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    write("rhymes.txt", rhymes());
  }
  Outcome train(const std::string& more, const std::string& out = "run") const {
    return run(fmt::format("train --corpus rhymes.txt {} --out {} {}", kSmall, out, more));
  }
};

std::vector<nlohmann::json> lines_of(const std::string& metrics) {
  std::vector<nlohmann::json> result;
  std::istringstream lines(metrics);
  for (std::string line; std::getline(lines, line);) {
    result.push_back(nlohmann::json::parse(line));
    result.back().erase("seconds");
  }
  return result;
}

TEST_F(TextProgram, TrainsReportsAndLeavesARun) {
  const Outcome trained = train("--json");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_NE(trained.err.find("of the held-out part, training holds"), std::string::npos) << trained.err;
  const auto summary = trained.json();
  for (const char* key : {"overlap", "parameters", "steps", "final_loss", "held_out", "held_out_all", "baselines",
                          "beats_five_gram", "best", "seconds", "steps_per_second", "run"}) {
    EXPECT_TRUE(summary.contains(key)) << key;
  }
  for (const char* key : {"8", "16", "32", "lines"}) EXPECT_TRUE(summary["overlap"].contains(key)) << key;
  for (const char* key : {"unigram", "bigram", "five_gram"}) {
    EXPECT_GT(summary["baselines"][key]["loss"], 0) << key;
    EXPECT_GT(summary["baselines"][key]["bits_per_byte"], 0) << key;
  }
  // Forty steps of a tiny model beat no five-gram model, and the program says so.
  EXPECT_FALSE(summary["beats_five_gram"]);
  const Outcome eval = run("eval run");
  EXPECT_EQ(eval.exit_code, 0) << eval.err;
  EXPECT_NE(eval.out.find("DOES NOT BEAT"), std::string::npos);
  EXPECT_LT(eval.out.find("training holds"), eval.out.find("loss a token"));  // the overlap before any score

  const auto metrics = lines_of(text("run/metrics.jsonl"));
  ASSERT_EQ(metrics.size(), 40u);
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    EXPECT_EQ(metrics[i].contains("held_out_loss"), (i + 1) % 10 == 0) << i;
    EXPECT_EQ(metrics[i].contains("held_out_bits_per_byte"), (i + 1) % 10 == 0) << i;
  }
  EXPECT_EQ(run("eval run --json").json()["held_out"], summary["held_out"]);
  const auto best = run("eval run --best --json");
  EXPECT_EQ(best.exit_code, 0) << best.err;
  EXPECT_EQ(best.json()["steps"], summary["best"]["step"]);
}

TEST_F(TextProgram, StoppingAndGoingOnGivesTheSameRun) {
  ASSERT_EQ(train("", "whole").exit_code, 0);
  ASSERT_EQ(train("--steps 17 --decay-steps 40 --warmup 2", "parts").exit_code, 0);
  const Outcome resumed = run("train --resume --steps 40 --out parts");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(lines_of(text("whole/metrics.jsonl")), lines_of(text("parts/metrics.jsonl")));
  EXPECT_EQ(text("whole/checkpoint.safetensors"), text("parts/checkpoint.safetensors"));
}

TEST_F(TextProgram, ConfigFileAndFlagsMeanTheSame) {
  ASSERT_EQ(train("--accumulate 2 --clip 0.3 --held-out-block 4 --seed 3", "a").exit_code, 0);
  ASSERT_EQ(run("train --config a/config.json --out b").exit_code, 0);
  EXPECT_EQ(text("a/checkpoint.safetensors"), text("b/checkpoint.safetensors"));
  EXPECT_EQ(text("a/config.json"), text("b/config.json"));
}

TEST_F(TextProgram, RefusesACorpusThatHasChanged) {
  ASSERT_EQ(train("").exit_code, 0);
  ASSERT_EQ(run("eval run").exit_code, 0);
  std::string changed = rhymes();
  changed[100] = 'o';
  write("rhymes.txt", changed);
  expect_refused("train --resume --steps 50 --out run", "not the file that the run began with");
  expect_refused("eval run", "not the file that the run began with");
  expect_refused("train --config run/config.json --out other", "not the file that the run began with");
  // Named anew it is a new corpus; the old text elsewhere still serves the old run.
  EXPECT_EQ(run("train --config run/config.json --corpus rhymes.txt --out other").exit_code, 0);
  write("moved.txt", rhymes());
  EXPECT_EQ(run("eval run --corpus moved.txt").exit_code, 0);
  EXPECT_EQ(run("train --resume --steps 50 --corpus moved.txt --out run").exit_code, 0);
  expect_refused("eval run --corpus nowhere.txt", "nowhere.txt");
}

TEST_F(TextProgram, GoesOnWithAPrompt) {
  ASSERT_EQ(train("").exit_code, 0);
  // Past the context of 16, with a cache as long as it serves and without.
  for (const char* more : {"", "--temperature 0.8 --seed 5 --top-k 9"}) {
    const Outcome with = run(fmt::format("generate run --prompt 'the é' --tokens 40 --json {}", more));
    const Outcome without = run(fmt::format("generate run --prompt 'the é' --tokens 40 --json --no-cache {}", more));
    ASSERT_EQ(with.exit_code, 0) << with.err;
    EXPECT_EQ(with.out, without.out);
    EXPECT_EQ(with.json()["tokens"].size(), 40u);
    const Outcome shown = run(fmt::format("generate run --prompt 'the é' --tokens 40 {}", more));
    EXPECT_EQ(shown.out, "the é" + with.json()["text"].get<std::string>() + "\n");
    // What came first does not change with how much follows.
    const Outcome fewer = run(fmt::format("generate run --prompt 'the é' --tokens 20 --json {}", more));
    EXPECT_EQ(with.json()["text"].get<std::string>().find(fewer.json()["text"].get<std::string>()), 0u);
  }
  EXPECT_EQ(run("generate run --prompt 'the crow told the crow told the crow' --tokens 3").exit_code, 0);
  EXPECT_EQ(run("generate run --best --prompt the").exit_code, 0);
  EXPECT_EQ(run("generate run --prompt the --tokens 0").out, "the\n");
  expect_refused("generate run --prompt 'a Z'", "character 0: expected one of");
  expect_refused("generate run --prompt 'the Z'", "\"Z\" (U+005A)");
  expect_refused("generate run --prompt 'the \xff'", "byte 4: not UTF-8");
  expect_refused("generate run --prompt ''", "--prompt");
  expect_refused("generate run --prompt the --tokens -1", "-1");
  expect_refused("inspect run --prompt the", "run on text");
}

TEST_F(TextProgram, TokensMayBeBytes) {
  write("latin1.txt", rhymes() + "\xff\xe9\n");
  expect_refused(fmt::format("train --corpus latin1.txt {} --out run", kSmall),
                 fmt::format("byte {}: not UTF-8", rhymes().size()));
  const Outcome trained = run(fmt::format("train --corpus latin1.txt --tokens bytes {} --out run --json", kSmall));
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const double loss = trained.json()["held_out"]["loss"], bits = trained.json()["held_out"]["bits_per_byte"];
  EXPECT_NEAR(bits, loss / std::log(2.0), 1e-12);
  EXPECT_EQ(run("generate run --prompt 'Z \xff' --tokens 5").exit_code, 0);
  EXPECT_EQ(run("generate run --prompt Z --tokens 30 --temperature 3 --json").json()["tokens"].size(), 30u);
}

TEST_F(TextProgram, BadTextsAndFlagsAreOneLineAndExitCode2) {
  write("empty.txt", "");
  write("short.txt", "abc");
  write("lines.txt", std::string(3200, '\n'));
  const std::string corpus = "train --out bad --corpus rhymes.txt ";
  for (const auto& [arguments, part] : std::vector<std::pair<std::string, std::string>>{
           {"train --corpus nowhere.txt", "nowhere.txt"},
           {"train --corpus .", "."},
           {"train --corpus ''", "--corpus"},
           {"train --corpus empty.txt", "empty file"},
           {"train --corpus short.txt", "below 2 tokens"},
           {"train --corpus lines.txt", "nothing is left to score"},
           {corpus + "--tokens words", "bytes|chars"},
           {corpus + "--context 0", "context"},
           {corpus + "--context 100000", "shorter context"},
           {corpus + "--context x", "--context"},
           {corpus + "--blocks 1", "blocks"},
           {corpus + "--held-out-block 11", "held_out_block"},
           {corpus + "--held-out-block 0", "held_out_block"},
           {corpus + "--evaluate-every 0", "evaluate_every"},
           {corpus + "--evaluate-windows -1", "evaluate_windows"},
           {corpus + "--task copy", "--task"},
           {corpus + "--length 6", "--length"},
           {corpus + "--alphabet 6", "--alphabet"},
           {corpus + "--warmup -1", "warmup"},
           {corpus + "--warmup 5000", "decay_steps"},
           {corpus + "--min-lr 1", "minimum_rate"},
           {corpus + "--min-lr nan", "minimum_rate"},
           {corpus + "--clip -1", "clip"},
           {corpus + "--accumulate 5", "accumulation"},
           {corpus + "--accumulate 0", "accumulation"},
           {corpus + "--beta2 1", "beta2"},
           {corpus + "--steps -1", "steps"},
           {"train --tokens chars", "--tokens"},
           {"train --context 64", "--context"},
           {"train --evaluate-every 5", "--evaluate-every"},
       }) {
    expect_refused(arguments, part);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "bad/checkpoint.safetensors")) << arguments;
    std::filesystem::remove_all(folder_ / "bad");
  }
  ASSERT_EQ(run("train --length 3 --alphabet 4 --steps 5 --out task").exit_code, 0);
  expect_refused("eval task --corpus rhymes.txt", "on a task");
  expect_refused("eval task --best", "best");
  expect_refused("train --resume --steps 9 --corpus rhymes.txt --out task", "on a task");
  ASSERT_EQ(train("").exit_code, 0);
  expect_refused("eval run --samples 5", "--samples");
  write("config.json", R"({"task": {}, "corpus": {"file": "rhymes.txt"}})");
  expect_refused("train --config config.json", "both");
}

}  // namespace
}  // namespace heedful::cli
