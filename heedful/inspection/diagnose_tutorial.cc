#include "heedful/inspection/diagnose_tutorial.h"

#include <fmt/ostream.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "heedful/core/random.h"
#include "heedful/inspection/diagnose_tutorial_symptoms.h"

namespace heedful {
namespace {

using diagnosis::kTraps;
using diagnosis::Symptom;
using diagnosis::Symptoms;
using diagnosis::Trap;

struct Lesson {
  std::string_view name, hint, told;
};

constexpr std::array<Lesson, kTraps> kLessons{{
    {"the scores are not divided by √d", "Compare the mean largest weight at width 64 with the right one.",
     "Without 1/√d the scores of wide heads spread by √d: the softmax saturates and passes on little gradient."},
    {"the mask is applied after the softmax", "A row of weights is an average: what should it sum to?",
     "The softmax had counted the hidden keys. Exclude them before it: rows must sum to 1."},
    {"the heads are joined without the transpose", "Whose values are found in which head?",
     "A reshape of [B, H, T, d] to [B, T, H·d] mixes heads and times. Transpose first; with one head nothing "
     "changes."},
    {"padding takes part in the softmax", "Look at the last two columns of the map: those keys are padding.",
     "A sequence's output then depends on what stands beside it in the batch. Mask the keys beyond its length."},
    {"the padding mask lies on the wrong axis", "Which rows of the map are blank, and which columns should be?",
     "Padding belongs to the keys, [B, T] along the last axis; on the query axis it blanks rows and hides no key."},
    {"the softmax runs over the queries", "One of rows and columns sums to 1. Which should?",
     "Normalise over the keys, the last axis: rows must sum to 1."},
    {"position is missing", "Exchange two tokens: are the outputs the same ones, exchanged?",
     "Attention treats its tokens as a bag. Add or rotate positions in; then an exchange changes the outputs."},
    {"the step of the gradient check is too large", "The code may be right; look at how it is checked.",
     "A difference over a large step crosses corners of the ReLU. Use a step near 1e-6."},
    {"attention weights are shown as an explanation", "Compare the claim with what removing a key does.",
     "A weight is an internal number, not a cause. Intervene on the input and measure the output."},
}};

// Eight heights, one character a bin.
std::string curve(const std::vector<double>& losses, double most) {
  constexpr std::array<std::string_view, 8> kHeights = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::size_t kBins = 40;
  std::string line;
  for (std::size_t bin = 0; bin < kBins; ++bin) {
    const std::size_t begin = bin * losses.size() / kBins, end = (bin + 1) * losses.size() / kBins;
    double sum = 0;
    for (std::size_t at = begin; at < end; ++at) sum += losses[at];
    const double height = sum / static_cast<double>(end - begin) / most * 7.99;
    line += kHeights[static_cast<std::size_t>(std::clamp(height, 0.0, 7.0))];
  }
  return line;
}

double last_mean(const std::vector<double>& losses) {
  double sum = 0;
  for (std::size_t at = losses.size() - 30; at < losses.size(); ++at) sum += losses[at];
  return sum / 30;
}

void show(std::ostream& page, const Symptoms& symptoms) {
  const double most = *std::ranges::max_element(symptoms.right_losses);
  fmt::print(page, "  loss, right  {} {:.3f} at the end\n", curve(symptoms.right_losses, most),
             last_mean(symptoms.right_losses));
  fmt::print(page, "  loss, here   {} {:.3f} at the end\n\n", curve(symptoms.losses, most),
             last_mean(symptoms.losses));
  fmt::print(page, "  {:<37} {:<32} {}\n", "", "right", "here");
  for (const Symptom& symptom : symptoms.measured) {
    fmt::print(page, "  {:<37} {:<32} {}\n", symptom.what, symptom.right, symptom.here);
  }
  fmt::print(page,
             "\n  weights of one head, a sequence of 4 tokens and 2 of padding (rows: queries, columns: keys)\n");
  constexpr std::array<std::string_view, 6> kShades = {"  · ", "  ░ ", "  ▒ ", "  ▓ ", "  █ ", "  █!"};
  for (const std::vector<double>& row : symptoms.heat_map) {
    page << "    ";
    for (const double weight : row) {
      const double shade = weight <= 0 ? 0 : 1 + std::floor(std::min(weight, 1.24) * 4);
      page << kShades[static_cast<std::size_t>(std::min(shade, 5.0))];
    }
    page << "  ";
    for (const double weight : row) fmt::print(page, " {:.2f}", weight);
    page << "\n";
  }
}

void list_traps(std::ostream& page) {
  for (int at = 0; at < kTraps; ++at)
    fmt::print(page, "  {}  {}\n", at + 1, kLessons[static_cast<std::size_t>(at)].name);
}

// Asks until the trap is said or told. False: the reader stops.
bool ask(std::istream& answers, std::ostream& page, int trap, TutorialScore& score) {
  const Lesson& lesson = kLessons[static_cast<std::size_t>(trap - 1)];
  std::string answer;
  while (page << "which? (1–9, h hint, s tell me, q stop) " << std::flush, answers >> answer) {
    page << "\n";
    if (answer == "q") return false;
    if (answer == "h") {
      fmt::print(page, "  {}\n", lesson.hint);
    } else if (answer == "s" || answer == std::to_string(trap)) {
      score.right += answer != "s";
      fmt::print(page, "{} {}: {}.\n  {}\n", answer == "s" ? "It is" : "Right,", trap, lesson.name, lesson.told);
      return true;
    } else {
      fmt::print(page, "  Not {}: compare the two columns line by line.\n", answer);
    }
  }
  page << "\n";
  return false;
}

}  // namespace

TutorialScore run_tutorial(std::istream& answers, std::ostream& page, std::uint64_t seed) {
  page << "Nine traps that raise no exception. In each exercise one is hidden; the loss falls all the same.\n";
  list_traps(page);
  TutorialScore score;
  Random random(seed);
  for (const Index drawn : random.permutation(kTraps)) {
    const int trap = static_cast<int>(drawn) + 1;
    fmt::print(page, "\nexercise {} of {}\n", ++score.asked, kTraps);
    show(page, diagnosis::measure_symptoms(static_cast<Trap>(trap), seed));
    if (!ask(answers, page, trap, score)) break;
  }
  fmt::print(page, "\n{} of {} named.\n", score.right, score.asked);
  return score;
}

}  // namespace heedful
