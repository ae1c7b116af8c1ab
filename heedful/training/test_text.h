// Test support: small texts on disk. The proverbs are old and nobody's; the rest is made up on the spot.
#ifndef HEEDFUL_TRAINING_TEST_TEXT_H_
#define HEEDFUL_TRAINING_TEST_TEXT_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "heedful/core/random.h"
#include "heedful/training/corpus.h"

namespace heedful {

inline constexpr const char* kProverbs =
    "A stitch in time saves nine.\nA rolling stone gathers no moss.\nAll that glitters is not gold.\n"
    "Make hay while the sun shines.\nStill waters run deep.\nThe early bird catches the worm.\n"
    "Strike while the iron is hot.\nMany hands make light work.\nToo many cooks spoil the broth.\n"
    "Look before you leap.\nHe who hesitates is lost.\nA watched pot never boils.\nHaste makes waste.\n"
    "Where there is smoke there is fire.\nOut of sight, out of mind.\nBirds of a feather flock together.\n"
    "Actions speak louder than words.\nThe pen is mightier than the sword.\nNo man is an island.\n"
    "Practice makes perfect.\nFortune favours the bold.\nAn apple a day keeps the doctor away.\n"
    "Every cloud has a silver lining.\nDo not count your chickens before they hatch.\n"
    "Never look a gift horse in the mouth.\nRome was not built in a day.\nSlow and steady wins the race.\n";

// `lines` sentences of a tiny grammar, drawn from `seed`; hardly two alike.
inline std::string sentences(Index lines, std::uint64_t seed) {
  constexpr const char* kWho[] = {"the miller", "a fox", "the old king", "my sister", "one sailor", "the baker"};
  constexpr const char* kDoes[] = {"sees", "follows", "remembers", "carries", "paints", "forgets"};
  constexpr const char* kWhat[] = {"the river", "a lantern", "seven apples", "the road", "a letter", "the moon"};
  constexpr const char* kWhen[] = {"at dawn", "in winter", "twice", "by the gate", "after supper", "alone"};
  Random random(seed);
  const auto one_of = [&](const auto& words) { return std::string(words[random.integer(0, 6)]); };
  std::string text;
  for (Index i = 0; i < lines; ++i) {
    text += one_of(kWho) + " " + one_of(kDoes) + " " + one_of(kWhat) + " " + one_of(kWhen) + " and " + one_of(kDoes) +
            " " + one_of(kWhat) + ".\n";
  }
  return text;
}

class TextFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() /
        fmt::format("heedful-text-{}-{}", ::testing::UnitTest::GetInstance()->current_test_info()->name(), getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& text) const {
    const auto path = folder_ / "corpus.txt";
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }
  CorpusOptions options_for(const std::string& text) const {
    CorpusOptions options;
    options.file = write(text);
    return options;
  }
  Corpus corpus_of(const std::string& text, Index blocks = 10, Index held_out_block = 10) const {
    CorpusOptions options = options_for(text);
    options.blocks = blocks;
    options.held_out_block = held_out_block;
    return read_corpus(options);
  }

  std::filesystem::path folder_;
};

}  // namespace heedful

#endif  // HEEDFUL_TRAINING_TEST_TEXT_H_
