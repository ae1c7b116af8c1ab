// Training on text as a whole: the score on the held-out part, resuming, and that it learns what can be learnt.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "heedful/core/error.h"
#include "heedful/formats/safetensors.h"
#include "heedful/training/checkpoint.h"
#include "heedful/training/corpus_report.h"
#include "heedful/training/test_text.h"
#include "heedful/training/trainer.h"

namespace heedful {
namespace {

using TextTraining = TextFolder;

TrainOptions small(const Corpus& corpus) {
  TrainOptions options = text_defaults(corpus.options);
  options.model.context = 16;
  options.model.width = 16;
  options.model.heads = options.model.kv_heads = 2;
  options.model.layers = 1;
  options.model.feed_forward = 32;
  options.batch = 4;
  options.steps = 30;
  options.schedule = {.warmup = 5, .decay_steps = 30, .minimum_rate = 1e-4, .clip = 0.5, .accumulation = 2};
  options.corpus->evaluate_every = 10;
  options.corpus->evaluate_windows = 8;
  return options;
}

template <class T>
bool same_bits(const Tensor<T, 1>& a, const Tensor<T, 1>& b) {
  return std::memcmp(a.data(), b.data(), sizeof(T) * static_cast<std::size_t>(a.size())) == 0;
}

template <class T>
void run(Trainer<T>& trainer, Index steps) {
  while (trainer.state().step < steps) {
    trainer.step();
    if (trainer.state().step % trainer.state().options.corpus->evaluate_every == 0) trainer.evaluate();
  }
}

TEST_F(TextTraining, StoppingAndGoingOnGivesTheSameBits) {
  const Corpus corpus = corpus_of(sentences(60, 3));
  const Context context(1);
  Trainer<float> straight(new_training<float>(small(corpus)), context, &corpus);
  run(straight, 30);
  save_checkpoint(folder_ / "straight.safetensors", straight.state());
  for (Index stop : {0, 7, 10, 25}) {
    const auto path = folder_ / "stopped.safetensors";
    Trainer<float> first(new_training<float>(small(corpus)), context, &corpus);
    run(first, stop);
    save_checkpoint(path, first.state());
    const TrainingState<float> loaded = load_checkpoint<float>(path);
    ASSERT_EQ(loaded.best.has_value(), stop >= 10);
    if (loaded.best) {
      EXPECT_EQ(loaded.best->step, first.state().best->step);
      EXPECT_EQ(loaded.best->loss, first.state().best->loss);
    }
    const Corpus again = read_corpus(*loaded.options.corpus);
    Trainer<float> second(load_checkpoint<float>(path), context, &again);
    run(second, 30);
    EXPECT_TRUE(same_bits(straight.state().decoder.parameters, second.state().decoder.parameters)) << stop;
    save_checkpoint(path, second.state());
    EXPECT_EQ(as_text(read_file(path)), as_text(read_file(folder_ / "straight.safetensors"))) << stop;
  }
}

TEST_F(TextTraining, ThreadsAndEvaluatingChangeNoBitOfTheParameters) {
  const Corpus corpus = corpus_of(sentences(60, 3));
  const Context one(1), three(3);
  Trainer<float> a(new_training<float>(small(corpus)), one, &corpus);
  Trainer<float> b(new_training<float>(small(corpus)), three, &corpus);
  run(a, 20);
  while (b.state().step < 20) b.step();
  EXPECT_TRUE(same_bits(a.state().decoder.parameters, b.state().decoder.parameters));
}

TEST_F(TextTraining, TheBestScoreIsRemembered) {
  const Corpus corpus = corpus_of(sentences(60, 3));
  const Context context(1);
  Trainer<float> trainer(new_training<float>(small(corpus)), context, &corpus);
  EXPECT_FALSE(trainer.state().best);
  const double first = trainer.evaluate().fresh.loss();
  EXPECT_EQ(trainer.state().best->loss, first);
  EXPECT_EQ(trainer.state().best->step, 0);
  double best = first;
  Index step = 0;
  for (int i = 0; i < 30; ++i) {
    trainer.step();
    const double now = trainer.evaluate().fresh.loss();
    if (now < best) {
      best = now;
      step = trainer.state().step;
    }
    EXPECT_EQ(trainer.state().best->loss, best);
    EXPECT_EQ(trainer.state().best->step, step);
  }
  EXPECT_GT(step, 0);
}

// Window by window and position by position, with the context cut as held_out.h says: the same forward pass, so the
// losses agree to the rounding of their sum.
TEST_F(TextTraining, TheScoreCoversEveryHeldOutTokenOnce) {
  for (Index context_length : {1, 7, 16}) {
    const Corpus corpus = corpus_of(std::string(kProverbs) + sentences(30, 4), 9, 3);
    TrainOptions options = small(corpus);
    options.model.context = context_length;
    options.precision = Precision::f64;
    const TrainingState<double> state = new_training<double>(options);
    const Context context(1);
    const HeldOutScore got = score(context, corpus, state.decoder, 0);

    const TokensView text = corpus.held_out();
    Activations<double> activations;
    double all = 0, fresh = 0;
    Index fresh_tokens = 0;
    for (std::size_t at = 1; at < text.size(); ++at) {
      const std::size_t begin =
          (at - 1) / static_cast<std::size_t>(context_length) * static_cast<std::size_t>(context_length);
      Batch<double> batch = make_windows<double>(1, static_cast<Index>(at - begin));
      batch.loss_weights.fill(0);
      for (std::size_t t = begin; t < at; ++t) batch.tokens(0, static_cast<Index>(t - begin)) = text[t];
      batch.targets(0, static_cast<Index>(at - begin) - 1) = text[at];
      batch.loss_weights(0, static_cast<Index>(at - begin) - 1) = 1;
      const double loss = decoder_loss(context, activations, state.decoder, batch);
      all += loss;
      if (corpus.fresh[at]) {
        fresh += loss;
        ++fresh_tokens;
      }
    }
    EXPECT_EQ(got.all.tokens, std::ssize(text) - 1);
    EXPECT_EQ(got.fresh.tokens, fresh_tokens);
    EXPECT_NEAR(got.all.nats, all, all * static_cast<double>(text.size()) * 1.2e-16);
    EXPECT_NEAR(got.fresh.nats, fresh, fresh * static_cast<double>(text.size()) * 1.2e-16);
  }
}

TEST_F(TextTraining, ASampleOfWindowsIsPartOfTheWhole) {
  const Corpus corpus = corpus_of(sentences(120, 5));
  const TrainingState<float> state = new_training<float>(small(corpus));
  const Context context(1);
  const HeldOutScore all = score(context, corpus, state.decoder, 0);
  const HeldOutScore more_than_there_are = score(context, corpus, state.decoder, 100000);
  EXPECT_EQ(more_than_there_are.all.nats, all.all.nats);
  // Evenly spread: windows ⌊i·n/3⌋ of n. The same losses summed in another order, each within an ulp of float.
  const HeldOutScore three = score(context, corpus, state.decoder, 3);
  EXPECT_EQ(three.all.tokens, 3 * 16);
  const TokensView text = corpus.held_out();
  const Index n = (std::ssize(text) - 1 + 15) / 16;
  Activations<float> activations;
  double nats = 0;
  for (Index i = 0; i < 3; ++i) {
    const Index begin = i * n / 3 * 16;
    Batch<float> batch = make_windows<float>(1, 16);
    for (Index t = 0; t < 16; ++t) {
      batch.tokens(0, t) = text[static_cast<std::size_t>(begin + t)];
      batch.targets(0, t) = text[static_cast<std::size_t>(begin + t + 1)];
    }
    nats += 16 * decoder_loss(context, activations, state.decoder, batch);
  }
  EXPECT_NEAR(three.all.nats, nats, nats * 48 * 1.2e-7);
}

// A token costs its bytes: the same nats over twice the bytes are half the bits.
TEST_F(TextTraining, BitsPerByteCountBytesNotTokens) {
  std::u32string text;
  for (const char c : sentences(60, 6)) text.push_back(c == '\n' || c == ' ' ? static_cast<char32_t>(c) : 0x400 + c);
  const Corpus corpus = corpus_of(to_utf8(text));
  const TextScore score = report_on(corpus).five_gram().all;
  Index bytes = 0;
  for (const char32_t token : corpus.held_out().substr(1)) bytes += std::ssize(corpus.tokenizer.decode({&token, 1}));
  EXPECT_EQ(score.bytes, bytes);
  EXPECT_GT(score.bytes, score.tokens * 3 / 2);
  EXPECT_DOUBLE_EQ(score.bits_per_byte() * static_cast<double>(bytes) * std::log(2.0), score.nats);
}

// The grammar leaves six choices six times in about 46 characters: 6·ln 6/46 ≈ 0.24 nats a character. A unigram model
// is far from it; training must come well below, and the initial model must not.
TEST_F(TextTraining, Learns) {
  const Corpus corpus = corpus_of(sentences(400, 7));
  TrainOptions options = small(corpus);
  options.model.width = 32;
  options.model.feed_forward = 128;
  options.model.layers = 2;
  options.batch = 16;
  options.steps = 400;
  options.adam.learning_rate = 5e-3;
  options.schedule = {.warmup = 20, .decay_steps = 400, .minimum_rate = 5e-4, .clip = 1};
  const Context context(1);
  Trainer<float> trainer(new_training<float>(options), context, &corpus);
  const CorpusReport report = report_on(corpus);
  EXPECT_GT(trainer.evaluate().fresh.loss(), report.baselines[0].score.fresh.loss());
  while (trainer.state().step < options.steps) trainer.step();
  EXPECT_LT(score(context, corpus, trainer.state().decoder, 0).fresh.loss(),
            0.7 * report.baselines[1].score.fresh.loss());
}

TEST_F(TextTraining, RefusesTheWrongCorpus) {
  const Corpus corpus = corpus_of(sentences(60, 3));
  const Context context(1);
  EXPECT_THROW(Trainer<float>(new_training<float>(small(corpus)), context), Error);
  TrainOptions task;
  fit_model_to_task(task);
  EXPECT_THROW(Trainer<float>(new_training<float>(task), context, &corpus), Error);
  const Corpus other = corpus_of(sentences(60, 4));
  EXPECT_THROW(Trainer<float>(new_training<float>(small(corpus)), context, &other), Error);
  EXPECT_THROW(score(context, other, new_training<float>(task).decoder, 0), Error);  // another vocabulary
}

TEST_F(TextTraining, RefusesImpossibleOptions) {
  const Corpus corpus = corpus_of(sentences(60, 3));
  const auto refused = [&](auto change) {
    TrainOptions options = small(corpus);
    change(options);
    EXPECT_THROW(new_training<float>(options), Error);
  };
  refused([](TrainOptions& o) { o.corpus->bytes = 0; });
  refused([](TrainOptions& o) { o.corpus->alphabet = U"ba"; });
  refused([](TrainOptions& o) { o.model.vocabulary = 3; });
  refused([](TrainOptions& o) { o.schedule.warmup = -1; });
  refused([](TrainOptions& o) { o.schedule.decay_steps = 5; });  // not more than the warm-up
  refused([](TrainOptions& o) { o.schedule.decay_steps = -1; });
  refused([](TrainOptions& o) { o.schedule.minimum_rate = 1; });  // above the rate
  refused([](TrainOptions& o) { o.schedule.minimum_rate = NAN; });
  refused([](TrainOptions& o) { o.schedule.clip = -1; });
  refused([](TrainOptions& o) { o.schedule.clip = INFINITY; });
  refused([](TrainOptions& o) { o.schedule.accumulation = 3; });  // of a batch of 4
  refused([](TrainOptions& o) { o.schedule.accumulation = 0; });
}

TEST_F(TextTraining, OptionsGoThroughJson) {
  const Corpus corpus = corpus_of("ünïcödé text\n" + sentences(60, 3), 7, 2);
  const TrainOptions options = small(corpus);
  const auto json = nlohmann::json(options);
  EXPECT_FALSE(json.contains("task"));
  const TrainOptions back = nlohmann::json::parse(json.dump()).get<TrainOptions>();
  EXPECT_EQ(back.corpus, options.corpus);
  EXPECT_EQ(back.schedule, options.schedule);
  EXPECT_EQ(back.model, options.model);

  const auto refused = [&](auto change, const char* part) {
    auto changed = json;
    change(changed);
    try {
      (void)changed.template get<TrainOptions>();
      ADD_FAILURE() << part;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(part));
    }
  };
  refused([](auto& j) { j["task"] = {{"kind", "copy"}}; }, "both");
  refused([](auto& j) { j["corpus"]["colour"] = 3; }, "unknown key");
  refused([](auto& j) { j["corpus"]["file"] = 3; }, "file");
  refused([](auto& j) { j["corpus"]["tokens"] = "words"; }, "bytes|chars");
  refused([](auto& j) { j["corpus"]["hash"] = "0x12"; }, "hash");
  refused([](auto& j) { j["corpus"]["hash"] = ""; }, "hash");
  refused([](auto& j) { j["corpus"]["hash"] = "11112222333344445"; }, "hash");
  refused([](auto& j) { j["corpus"]["bytes"] = 1.5; }, "bytes");
  refused([](auto& j) { j["training"]["warm_up"] = 1; }, "unknown key");
}

// Runs on tasks are written as they were before there were texts and schedules.
TEST(TaskOptions, KeepTheirJson) {
  TrainOptions options;
  fit_model_to_task(options);
  const auto json = nlohmann::json(options);
  EXPECT_FALSE(json.contains("corpus"));
  EXPECT_EQ(json["training"].dump(),
            R"({"batch":32,"beta1":0.9,"beta2":0.999,"epsilon":1e-08,"learning_rate":0.003,"precision":"f32",)"
            R"("seed":0,"steps":1500,"weight_decay":0.0})");
}

}  // namespace
}  // namespace heedful
