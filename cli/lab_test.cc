// The lab, as a person would run it.
#include <set>
#include <sstream>

#include "cli/run_program.h"
#include "heedful/lab/lab.h"
#include "heedful/report/html.h"
#include "heedful/report/test_browser.h"

namespace heedful::cli {
namespace {

using LabProgram = ProgramTest;

TEST_F(LabProgram, ListsEveryExperimentOnALine) {
  const Outcome list = run("lab --list");
  EXPECT_EQ(list.exit_code, 0);
  EXPECT_EQ(std::ranges::count(list.out, '\n'), std::ssize(experiments()));
  for (const Experiment& experiment : experiments()) {
    EXPECT_NE(list.out.find(experiment.name), std::string::npos) << experiment.name;
    EXPECT_NE(list.out.find(experiment.title), std::string::npos) << experiment.name;
  }
}

TEST_F(LabProgram, RunsTheNamedOnesAndWritesWhatItMeasured) {
  const Outcome outcome = run("lab masks exercises --json lab.json --html lab.html");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("0 differ (0 of them must hold)"), std::string::npos) << outcome.out;
  const auto json = nlohmann::json::parse(text("lab.json"))["experiments"];
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json[0]["name"], "masks");
  EXPECT_EQ(json[0]["file"], "heedful/lab/masks.cc");
  for (const auto& experiment : json) {
    EXPECT_GT(experiment["claims"].size(), 3U);
    for (const auto& claim : experiment["claims"]) {
      for (const char* key : {"claim", "source", "verdict", "expected", "measured", "must_hold"}) {
        EXPECT_TRUE(claim.contains(key)) << key;
      }
      EXPECT_EQ(claim["verdict"], "holds") << claim;
    }
  }
  const std::string page = text("lab.html");
  for (const char* part : {"<section id=\"masks\">", "<section id=\"exercises\">", "quick, seed 0"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(outcome.err.find("built without npm") == std::string::npos, page_has_curves());
}

TEST_F(LabProgram, RefusesBeforeItWorks) {
  expect_refused("lab nothing", "expected one of attention");
  expect_refused("lab --seed -1", "--seed");
  expect_refused("lab masks --threads 0", "threads");
  expect_refused("lab --json no/such/folder.json", "no/such/folder.json");
  expect_refused("lab --html no/such/folder.html", "no/such/folder.html");
  expect_refused("lab --corpus missing.txt", "missing.txt");
  write("empty.txt", "");
  expect_refused("lab text --corpus empty.txt", "empty.txt");
  // Long enough to be cut, too short to train on: known before the text of known entropy is learnt.
  write("short.txt", "all work\nno play\nall day\nno end\nand so on\n");
  expect_refused("lab masks --corpus short.txt", "holds a window of 65 tokens");
  expect_refused("lab masks --json one.out --html one.out", "expected two files");
}

// What an earlier run left is still there until the new one has something to put in its place.
TEST_F(LabProgram, ARunThatFailsLosesNoEarlierReport) {
  write("lab.json", "the report of an earlier run");
  expect_refused("lab masks --json lab.json --html no/such/folder.html", "no/such/folder.html");
  EXPECT_EQ(text("lab.json"), "the report of an earlier run");
}

TEST_F(LabProgram, AnExperimentNamedTwiceRunsOnce) {
  ASSERT_EQ(run("lab masks heads masks --json lab.json").exit_code, 0);
  EXPECT_EQ(nlohmann::json::parse(text("lab.json"))["experiments"].size(), 2U);
}

TEST_F(LabProgram, SlowTextLearnsAFileOfOnesOwn) {
  std::string lines;
  for (int i = 0; i < 600; ++i) lines += fmt::format("the {} crow told {} the é of {}\n", i * 7 % 13, i * 5 % 11, i);
  write("crows.txt", lines);
  const Outcome outcome = run("lab text --corpus crows.txt --json lab.json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto text_report = nlohmann::json::parse(text("lab.json"))["experiments"][0];
  std::set<std::string> tables;
  for (const auto& table : text_report["tables"]) tables.insert(table["title"].get<std::string>().substr(0, 9));
  EXPECT_EQ(tables, (std::set<std::string>{"text of a", "crows.txt"}));
  EXPECT_EQ(text_report["tables"].size(), 3U);  // scores of both, and what the parts of the file share
  EXPECT_EQ(text_report["curves"].size(), 2U);
  // A text of one's own may be too short or too strange to be learnt, which is no failure of the program.
  for (const auto& claim : text_report["claims"]) {
    const bool of_ones_own = claim["claim"].get<std::string>().starts_with("crows.txt");
    EXPECT_FALSE(of_ones_own && claim["must_hold"]) << claim;
  }
}

// Exit code 0: every claim that must hold does.
TEST_F(LabProgram, SlowTheWholeLabHoldsAndItsPageOpens) {
  const Outcome outcome = run("lab --json lab.json --html lab.html");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.out;
  std::set<std::string> names;
  std::size_t maps = 0, curves = 0;
  const auto json = nlohmann::json::parse(text("lab.json"))["experiments"];
  for (const auto& experiment : json) {
    names.insert(experiment["name"]);
    EXPECT_FALSE(experiment["claims"].empty()) << experiment["name"];
    maps += experiment["maps"].size();
    curves += experiment["curves"].size();
    for (const auto& table : experiment["tables"]) {
      for (const auto& row : table["rows"]) EXPECT_EQ(row.size(), table["columns"].size()) << table["title"];
    }
  }
  for (const Experiment& experiment : experiments()) EXPECT_TRUE(names.contains(std::string(experiment.name)));
  const std::string page = text("lab.html");
  EXPECT_LT(page.size(), std::size_t{2} << 20);
  for (const std::string& name : names) {
    EXPECT_NE(page.find(fmt::format("<section id=\"{}\">", name)), std::string::npos) << name;
  }
  EXPECT_GE(maps, 1U);
  EXPECT_GE(curves, 6U);

  if (!Browser::installed()) GTEST_SKIP() << "the page was not opened: chromium is not installed";
  const Browser browser;
  const std::string seen = browser.visit(page, R"(
const count = (what) => document.querySelectorAll(what).length;
return [count('section') + ' sections', count('[data-map] canvas') + ' maps', count('[data-curve] canvas') + ' curves',
        (document.documentElement.scrollWidth <= innerWidth) + ' fits'];)");
  const std::size_t drawn = page_has_curves() ? curves : 0;
  EXPECT_EQ(seen, fmt::format("{} sections | {} maps | {} curves | true fits | 0 errors", names.size(), maps, drawn));
  const auto picture = browser.screenshot(page, 390, 4000);
  std::filesystem::copy_file(picture, HEEDFUL_SCREENSHOT, std::filesystem::copy_options::overwrite_existing);
}

}  // namespace
}  // namespace heedful::cli
