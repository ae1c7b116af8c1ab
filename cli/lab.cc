// heedful lab: the documents' experiments on this machine, claim by claim.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/progress.h"
#include "heedful/core/error.h"
#include "heedful/formats/bytes.h"
#include "heedful/lab/lab.h"
#include "heedful/report/html.h"
#include "heedful/report/json.h"
#include "heedful/report/text.h"
#include "heedful/training/corpus.h"
#include "heedful/training/options.h"

namespace heedful::cli {
namespace {

struct LabFlags {
  std::vector<std::string> names;
  LabOptions options;
  int threads = 2;
  bool list = false;
  std::string json, html;
};

double estimated_seconds(const Experiment& experiment, bool full) {
  return full ? experiment.full_seconds : experiment.quick_seconds;
}

int list() {
  for (const Experiment& experiment : experiments()) fmt::print("{:14} {}\n", experiment.name, experiment.title);
  return kDone;
}

std::vector<Report> run_all(const LabFlags& flags, const std::vector<const Experiment*>& chosen) {
  double total = 0, before = 0, current = 0;
  for (const auto* experiment : chosen) total += estimated_seconds(*experiment, flags.options.full);
  const Context context(flags.threads);
  constexpr Index kParts = 10000;
  ProgressLine line("lab", "");
  const Lab lab(context, flags.options, [&](double share, std::string_view what) {
    line.show(static_cast<Index>(kParts * (before + share * current) / total), kParts, what);
  });
  std::vector<Report> reports;
  for (const auto* experiment : chosen) {
    current = estimated_seconds(*experiment, flags.options.full);
    reports.push_back(run_experiment(*experiment, lab));
    before += current;
  }
  return reports;
}

int run(const LabFlags& flags) {
  if (flags.list) return list();
  std::vector<const Experiment*> chosen;
  for (const std::string& name : flags.names) {
    const Experiment* experiment = &find_experiment(name);
    if (std::ranges::find(chosen, experiment) == chosen.end()) chosen.push_back(experiment);
  }
  if (chosen.empty()) {
    for (const Experiment& experiment : experiments()) chosen.push_back(&experiment);
  }
  // What cannot be read or written is better known before the work.
  if (!flags.options.corpus.empty()) {
    CorpusOptions options;
    options.file = flags.options.corpus;
    const Corpus corpus = read_corpus(options);
    require_windows(corpus, text_defaults(corpus.options).model.context);
  }
  require(flags.json.empty() || flags.json != flags.html, "lab",
          "--json and --html: expected two files, got {} twice", flags.json);
  for (const std::string& path : {flags.json, flags.html}) {
    if (!path.empty()) require_writable(path);
  }
  const std::vector<Report> reports = run_all(flags, chosen);
  bool failed = false;
  for (const Report& report : reports) {
    fmt::print("{}", render_text(report));
    failed = failed || report.failed();
  }
  fmt::print("{}\n", render_verdicts(reports));
  if (!flags.json.empty()) write_file(flags.json, reports_json(reports).dump(1) + "\n");
  if (!flags.html.empty()) {
    const std::string subtitle =
        fmt::format("{}, seed {}", flags.options.full ? "full" : "quick", flags.options.seed);
    write_file(flags.html, render_html(reports, subtitle));
    if (!page_has_curves()) fmt::print(stderr, "lab: built without npm, so {} draws no curves\n", flags.html);
  }
  return failed ? kFailed : kDone;
}

}  // namespace

void add_lab(CLI::App& app, int& exit_code) {
  CLI::App& command =
      *app.add_subcommand("lab", "Measure the claims made about attention, one by one, on this machine");
  auto flags = std::make_shared<LabFlags>();
  command.add_option("name", flags->names, "Experiments to run; all where none is named");
  command.add_flag("--list", flags->list, "Name the experiments and stop");
  command.add_flag("--full", flags->options.full, "Every seed and step instead of the quick selection");
  command.add_option("--seed", flags->options.seed, "Added to the seeds of trainings judged as distributions")
      ->capture_default_str();
  command.add_option(
      "--corpus", flags->options.corpus,
      "A file of UTF-8 text for `text` to learn from, beside the text of known entropy that it writes");
  command.add_option("--threads", flags->threads, "Threads to use")->capture_default_str();
  command.add_option("--json", flags->json, "Also write every claim, table and figure to this file");
  command.add_option("--html", flags->html, "Also write a page with curves and attention maps, in one file");
  command.footer("Example: heedful lab scaling masks --json lab.json");
  command.callback([flags, &exit_code] { exit_code = run(*flags); });
}

}  // namespace heedful::cli
