#include "heedful/training/corpus.h"

#include <gmock/gmock.h>

#include <set>

#include "heedful/core/error.h"
#include "heedful/training/overlap.h"
#include "heedful/training/test_text.h"

namespace heedful {
namespace {

using CorpusTest = TextFolder;

std::string error_of(const CorpusOptions& options) {
  try {
    read_corpus(options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_F(CorpusTest, TheLastTenthIsHeldOut) {
  const std::string text = kProverbs;
  const Corpus corpus = corpus_of(text);
  const auto cut = static_cast<Index>(text.size()) * 9 / 10;
  EXPECT_EQ(corpus.held_out_begin, cut);
  EXPECT_EQ(corpus.tokenizer.decode(corpus.held_out()), text.substr(static_cast<std::size_t>(cut)));
  ASSERT_EQ(corpus.training().size(), 1u);
  EXPECT_EQ(corpus.tokenizer.decode(corpus.training()[0]), text.substr(0, static_cast<std::size_t>(cut)));
  EXPECT_EQ(corpus.options.bytes, static_cast<Index>(text.size()));
  EXPECT_EQ(corpus.options.hash, hash_of(text));
}

TEST_F(CorpusTest, AnyBlockCanBeHeldOutAndTheBlocksAreThePartition) {
  const std::string text = kProverbs;
  for (Index blocks : {2, 3, 7}) {
    std::string all;
    for (Index k = 1; k <= blocks; ++k) {
      const Corpus corpus = corpus_of(text, blocks, k);
      all += corpus.tokenizer.decode(corpus.held_out());
      EXPECT_EQ(corpus.training().size(), k == 1 || k == blocks ? 1u : 2u);
      std::size_t size = corpus.held_out().size();
      for (const TokensView part : corpus.training()) size += part.size();
      EXPECT_EQ(size, text.size());
    }
    EXPECT_EQ(all, text);
  }
}

// The published offset basis, and the published value for "a": Fowler, Noll & Vo, the 64-bit FNV-1a test vectors.
TEST(CorpusHash, IsFnv1a) {
  EXPECT_EQ(hash_of(""), 0xcbf29ce484222325u);
  EXPECT_EQ(hash_of("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(hash_of("foobar"), 0x85944171f73967e8u);
}

// Every token of the text differs, so that a window names its place.
TEST_F(CorpusTest, NoWindowTouchesTheHeldOutPartOrCrossesTheCut) {
  std::u32string text;
  for (char32_t c = 0x4E00; c < 0x4E00 + 300; ++c) text.push_back(c);
  for (Index k : {1, 2, 5, 10}) {
    const Corpus corpus = corpus_of(to_utf8(text), 10, k);
    for (Index length : {1, 7, 29}) {
      Batch<float> batch = make_windows<float>(64, length);
      Random random(static_cast<std::uint64_t>(k));
      std::set<Index> seen;
      for (int draw = 0; draw < 60; ++draw) {
        draw_windows(batch, corpus, random);
        for (Index b = 0; b < 64; ++b) {
          for (Index t = 0; t < length; ++t) {
            const Index token = batch.tokens(b, t);
            EXPECT_EQ(token, batch.tokens(b, 0) + t);
            EXPECT_EQ(batch.targets(b, t), token + 1);
            EXPECT_EQ(batch.loss_weights(b, t), 1);
            for (const Index each : {token, token + 1}) {
              ASSERT_TRUE(each < corpus.held_out_begin || each >= corpus.held_out_end) << each;
              seen.insert(each);
            }
          }
        }
      }
      // All of training is reachable but a part too short for a window; 3840 draws miss none of 270 places (the chance
      // that one place stays unseen is below 270·(1 − 1/270)^3840 < 2e-4, and the seed is fixed).
      Index reachable = 0;
      for (const TokensView part : corpus.training()) {
        if (std::ssize(part) > length) reachable += std::ssize(part);
      }
      EXPECT_EQ(std::ssize(seen), reachable) << k << " " << length;
    }
  }
}

TEST_F(CorpusTest, AContextLongerThanTrainingIsRefused) {
  const Corpus corpus = corpus_of(kProverbs, 2, 2);
  Batch<float> batch = make_windows<float>(1, std::ssize(corpus.training()[0]));
  Random random(0);
  EXPECT_THROW(draw_windows(batch, corpus, random), Error);
  batch = make_windows<float>(1, std::ssize(corpus.training()[0]) - 1);
  draw_windows(batch, corpus, random);
  EXPECT_EQ(batch.tokens(0, 0), corpus.tokens[0]);
}

TEST_F(CorpusTest, APlantedLineIsReportedAndDoesNotCount) {
  const std::string clean = sentences(40, 1);
  const std::string secret = "only the planted line says quixotic zephyrs vex me.\n";
  const Corpus honest = corpus_of(clean + secret + "so it ends.\n", 20, 20);
  const Overlap before = line_overlap(honest);
  const Corpus leaky = corpus_of(secret + clean + secret + "so it ends.\n", 20, 20);
  const Overlap after = line_overlap(leaky);
  EXPECT_EQ(after.shared, before.shared + 1);
  const std::string held_out = leaky.tokenizer.decode(leaky.held_out());
  const std::size_t at = held_out.find(secret);
  ASSERT_NE(at, std::string::npos);
  for (std::size_t i = 0; i < held_out.size(); ++i) {
    if (i >= at && i < at + secret.size()) {
      EXPECT_FALSE(leaky.fresh[i]) << i;
    } else if (i >= at + secret.size()) {
      EXPECT_TRUE(leaky.fresh[i]) << i;  // "so it ends."
    }
  }
  EXPECT_GT(gram_overlap(leaky, 32).shared, gram_overlap(honest, 32).shared);
}

// Counted by hand: ten tokens for training, ten held out.
TEST_F(CorpusTest, OverlapByHand) {
  const Corpus corpus = corpus_of("abcabd\nxy\nbcaQ\nxy\nab", 2, 2);
  ASSERT_EQ(corpus.tokenizer.decode(corpus.held_out()), "bcaQ\nxy\nab");
  const Overlap twos = gram_overlap(corpus, 2);
  EXPECT_EQ(twos.count, 9);                      // bc ca aQ Q\n \nx xy y\n \na ab
  EXPECT_EQ(twos.shared, 6);                     // bc ca \nx xy y\n ab
  EXPECT_EQ(gram_overlap(corpus, 3).shared, 3);  // bca \nxy xy\n
  EXPECT_EQ(gram_overlap(corpus, 10).count, 1);
  EXPECT_EQ(gram_overlap(corpus, 10).shared, 0);
  EXPECT_EQ(gram_overlap(corpus, 11).count, 0);
  EXPECT_EQ(gram_overlap(corpus, 11).share(), 0);
  EXPECT_EQ(line_overlap(corpus).count, 3);
  EXPECT_EQ(line_overlap(corpus).shared, 1);
  EXPECT_THROW(gram_overlap(corpus, 0), Error);
  const std::vector<bool> fresh = {1, 1, 1, 1, 1, 0, 0, 0, 1, 1};
  EXPECT_EQ(corpus.fresh, fresh);
}

// A gram that spans the cut of a middle block never stood in training.
TEST_F(CorpusTest, NothingIsSharedAcrossTheSeam) {
  const Corpus seam = corpus_of("0123344w4567", 3, 2);
  ASSERT_EQ(seam.tokenizer.decode(seam.held_out()), "344w");
  EXPECT_EQ(gram_overlap(seam, 2).shared, 0);  // "34" spans 0123|4567
}

TEST_F(CorpusTest, RefusesBadTexts) {
  EXPECT_THAT(error_of(options_for("")), testing::HasSubstr("empty file"));
  EXPECT_THAT(error_of(options_for("abc")), testing::HasSubstr("below 2 tokens"));
  EXPECT_THAT(error_of(options_for(std::string(kProverbs) + "\xff")),
              testing::HasSubstr(fmt::format("byte {}: not UTF-8", std::string(kProverbs).size())));
  std::string same;
  for (int i = 0; i < 200; ++i) same += "again and again\n";
  // The cut falls on a line's end, so that nothing but whole known lines is held out.
  EXPECT_THAT(error_of(options_for(same)), testing::HasSubstr("nothing is left to score"));
  CorpusOptions none;
  EXPECT_THAT(error_of(none), testing::HasSubstr("file"));
  none.file = (folder_ / "none").string();
  EXPECT_NE(error_of(none), "");
  none.file = folder_.string();
  EXPECT_NE(error_of(none), "");
  const auto refused = [&](auto change, const char* part) {
    CorpusOptions options = options_for(kProverbs);
    change(options);
    EXPECT_THAT(error_of(options), testing::HasSubstr(part));
  };
  refused([](CorpusOptions& o) { o.blocks = 1; }, "blocks");
  refused([](CorpusOptions& o) { o.blocks = -1; }, "blocks");
  refused([](CorpusOptions& o) { o.held_out_block = 0; }, "held_out_block");
  refused([](CorpusOptions& o) { o.held_out_block = 11; }, "held_out_block");
  refused([](CorpusOptions& o) { o.evaluate_every = 0; }, "evaluate_every");
  refused([](CorpusOptions& o) { o.evaluate_windows = -1; }, "evaluate_windows");
  refused([](CorpusOptions& o) { o.bytes = -1; }, "bytes");
}

TEST_F(CorpusTest, RefusesAFileThatHasChanged) {
  const Corpus corpus = corpus_of(kProverbs);
  EXPECT_EQ(read_corpus(corpus.options).tokens, corpus.tokens);
  std::string text = kProverbs;
  text[3] = 'x';
  write(text);
  EXPECT_THAT(error_of(corpus.options), testing::HasSubstr("not the file that the run began with"));
  write(std::string(kProverbs) + "more\n");
  EXPECT_THAT(error_of(corpus.options), testing::HasSubstr("not the file that the run began with"));
}

TEST_F(CorpusTest, BytesNeedNoUtf8) {
  CorpusOptions options = options_for(std::string(kProverbs) + "\xff\xfe latin-1: \xe9\n");
  options.tokens = TokenKind::bytes;
  const Corpus corpus = read_corpus(options);
  EXPECT_EQ(corpus.tokenizer.vocabulary(), 256);
  EXPECT_TRUE(corpus.options.alphabet.empty());
  EXPECT_EQ(corpus.tokens.back(), U'\n');
}

}  // namespace
}  // namespace heedful
