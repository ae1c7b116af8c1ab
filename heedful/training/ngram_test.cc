#include "heedful/training/ngram.h"

#include <cmath>

#include "heedful/core/error.h"
#include "heedful/training/corpus_report.h"
#include "heedful/training/test_text.h"

namespace heedful {
namespace {

using NGramTest = TextFolder;

// Σ_w P(w | h) = 1 whatever h holds: seen, seen in part, never seen, empty, longer than the model reads. V additions
// and a few roundings a term: (V + 8k)·2⁻⁵³ ≤ 300·1.2e-16.
TEST_F(NGramTest, ProbabilitiesSumToOneAndAreAbove0) {
  const Corpus corpus = corpus_of(kProverbs, 10, 4);
  const Index vocabulary = corpus.tokenizer.vocabulary();
  for (Index order = 1; order <= 7; ++order) {
    const NGram model(corpus.training(), order, vocabulary);
    for (const char* text : {"", "t", "th", "the", "the ", "d the ", "qqqq", "zthe", "he who hesitates"}) {
      const Tokens before = [&] {
        Tokens tokens;
        for (const char* c = text; *c != 0; ++c) tokens.push_back(static_cast<char32_t>(*c % vocabulary));
        return tokens;
      }();
      double sum = 0;
      for (char32_t w = 0; w < static_cast<char32_t>(vocabulary); ++w) {
        const double p = model.probability(before, w);
        EXPECT_GT(p, 0);
        sum += p;
      }
      EXPECT_NEAR(sum, 1, 300 * 1.2e-16) << order << " " << text;
    }
    // And behind every place of the text itself.
    const TokensView part = corpus.training()[0];
    for (std::size_t i = 0; i < 100; ++i) {
      double sum = 0;
      for (char32_t w = 0; w < static_cast<char32_t>(vocabulary); ++w) sum += model.probability(part.substr(0, i), w);
      EXPECT_NEAR(sum, 1, 300 * 1.2e-16);
    }
  }
}

// "abab ac" as a b a b _ a c with V = 4. Order 2, raw: ab 2, ba 1, b_ 1, _a 1, ac 1: n₁ = 4, n₂ = 1, D₂ = 4/6.
// Order 1, by what stands before: b {a} 1, a {b, _} 2, _ {b} 1, c {a} 1: n₁ = 3, n₂ = 1, D₁ = 3/5, total 5, four kinds.
TEST(NGram, ByHand) {
  const Tokens text = {0, 1, 0, 1, 3, 0, 2};
  const NGram model({text}, 2, 4);
  const double d1 = 3.0 / 5, d2 = 4.0 / 6;
  const auto p1 = [&](double count) { return (std::max(count - d1, 0.0) + d1 * 4 / 4.0) / 5; };
  // c(a·) = 3 (ab, ab, ac), two kinds.
  EXPECT_DOUBLE_EQ(model.probability(Tokens{0}, 1), (2 - d2 + d2 * 2 * p1(1)) / 3);
  EXPECT_DOUBLE_EQ(model.probability(Tokens{0}, 2), (1 - d2 + d2 * 2 * p1(1)) / 3);
  EXPECT_DOUBLE_EQ(model.probability(Tokens{0}, 0), d2 * 2 * p1(2) / 3);
  EXPECT_DOUBLE_EQ(model.probability(Tokens{1, 3, 0}, 0), d2 * 2 * p1(2) / 3);  // the last one counts
  EXPECT_DOUBLE_EQ(model.probability(Tokens{2}, 0), p1(2));                     // c is followed by nothing
  EXPECT_DOUBLE_EQ(model.probability(Tokens{}, 3), p1(1));
}

TEST(NGram, NoGramReachesFromOnePartIntoTheNext) {
  const Tokens one = {0, 1, 0, 1}, two = {2, 3, 2, 3};
  const Tokens together = {0, 1, 0, 1, 2, 3, 2, 3};
  const NGram apart({one, two}, 2, 4), joined({together}, 2, 4);
  EXPECT_LT(apart.probability(Tokens{1}, 2), joined.probability(Tokens{1}, 2));
}

TEST(NGram, EmptyAndTinyTexts) {
  const Tokens none, one = {2};
  for (Index order : {1, 2, 5}) {
    EXPECT_DOUBLE_EQ(NGram({none}, order, 4).probability(Tokens{1, 2}, 3), 0.25);
    EXPECT_DOUBLE_EQ(NGram({}, order, 4).probability(Tokens{}, 3), 0.25);
  }
  // All mass is discounted: D = n₁/(n₁ + 2n₂) = 1.
  EXPECT_DOUBLE_EQ(NGram({one}, 1, 4).probability(Tokens{}, 2), 0.25);
  EXPECT_THROW(NGram({one}, 0, 4), Error);
  EXPECT_THROW(NGram({one}, 2, 0), Error);
}

TEST_F(NGramTest, LongerContextsHelpAndFitTheSameTraining) {
  const Corpus corpus = corpus_of(sentences(400, 2));
  const CorpusReport report = report_on(corpus);
  ASSERT_EQ(report.baselines.size(), 3u);
  double before = std::log(static_cast<double>(corpus.tokenizer.vocabulary()));
  for (const auto& [name, score] : report.baselines) {
    EXPECT_LT(score.all.loss(), before) << name;
    before = score.all.loss();
    EXPECT_EQ(score.all.tokens, std::ssize(corpus.held_out()) - 1);
    // ASCII: a token is a byte.
    EXPECT_DOUBLE_EQ(score.all.bits_per_byte(), score.all.loss() / std::log(2.0));
  }
  EXPECT_EQ(report.five_gram().all.tokens, report.baselines[2].score.all.tokens);
}

}  // namespace
}  // namespace heedful
