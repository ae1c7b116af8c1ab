#include "heedful/training/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "heedful/core/error.h"
#include "heedful/formats/bytes.h"
#include "heedful/formats/safetensors.h"
#include "heedful/training/checkpoint.h"
#include "heedful/training/evaluate.h"

namespace heedful {
namespace {

TrainOptions small(TaskKind kind = TaskKind::copy) {
  TrainOptions options;
  options.task = {kind, 3, 5};
  options.model.width = 16;
  options.model.heads = options.model.kv_heads = 2;
  options.model.feed_forward = 32;
  options.batch = 8;
  options.steps = 40;
  fit_model_to_task(options);
  return options;
}

class TemporaryFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              fmt::format("heedful-{}-{}", ::testing::UnitTest::GetInstance()->current_test_info()->name(), getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

template <class T>
void run(Trainer<T>& trainer, Index steps) {
  while (trainer.state().step < steps) trainer.step();
}

template <class T>
bool same_bits(const Tensor<T, 1>& a, const Tensor<T, 1>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), sizeof(T) * static_cast<std::size_t>(a.size())) == 0;
}

// A step that fails leaves the state a resumed run would fail from likewise: the same batch, the same numbers.
template <class T>
void expect_a_step_refused(TrainingState<T> start) {
  const Tensor<T, 1> parameters = start.decoder.parameters.copy();
  const std::uint64_t next = Random(start.random).state().state_low;
  const Context context(1);
  Trainer<T> trainer(std::move(start), context);
  EXPECT_THROW(trainer.step(), Error);
  EXPECT_EQ(trainer.state().step, 0);
  EXPECT_EQ(trainer.state().random.state().state_low, next);
  EXPECT_TRUE(same_bits(trainer.state().decoder.parameters, parameters));
}

TEST(FailedStep, OfALossThatIsNoNumberChangesNothing) {
  TrainingState<float> start = new_training<float>(small());
  start.decoder.parameters(0) = std::numeric_limits<float>::quiet_NaN();
  expect_a_step_refused(std::move(start));
}

// Logits of 1e28 make a finite loss; its gradient sums two output weights of 3e38, one more than a float holds.
TEST(FailedStep, OfAGradientThatOverflowsChangesNothing) {
  TrainOptions options = small();
  options.task.length = options.batch = 1;
  fit_model_to_task(options);
  TrainingState<float> start = new_training<float>(options);
  const auto weights = bind_weights<float>(options.model, start.decoder.parameters.data());
  for (Index c = 0; c < options.model.width; ++c) {
    weights.final_norm.gain[c] = 1e-10F;
    for (Index v = 0; v < options.model.vocabulary; ++v) {
      weights.unembedding.weight(c, v) = std::copysign(3e38F, weights.unembedding.weight(c, v));
    }
  }
  expect_a_step_refused(std::move(start));
}

template <class T>
class Resume : public TemporaryFolder {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Resume, Types);

TYPED_TEST(Resume, GivesTheBitsOfNeverHavingStopped) {
  using T = TypeParam;
  TrainOptions options = small();
  options.precision = sizeof(T) == 4 ? Precision::f32 : Precision::f64;
  const Context context(1);
  Trainer<T> straight(new_training<T>(options), context);
  run(straight, 40);
  for (Index stop : {0, 1, 17, 39}) {
    const auto path = this->folder_ / "checkpoint.safetensors";
    Trainer<T> first(new_training<T>(options), context);
    run(first, stop);
    save_checkpoint<T>(path, first.state());
    Trainer<T> second(load_checkpoint<T>(path), context);
    run(second, 40);
    EXPECT_TRUE(same_bits(straight.state().decoder.parameters, second.state().decoder.parameters)) << stop;
    EXPECT_TRUE(same_bits(straight.state().second_moment, second.state().second_moment)) << stop;
    EXPECT_EQ(straight.state().loss, second.state().loss);
  }
}

TYPED_TEST(Resume, ThreadsChangeNoBitOfATraining) {
  using T = TypeParam;
  const Context one(1), three(3);
  Trainer<T> a(new_training<T>(small()), one), b(new_training<T>(small()), three);
  run(a, 10);
  run(b, 10);
  EXPECT_TRUE(same_bits(a.state().decoder.parameters, b.state().decoder.parameters));
}

using Checkpoint = TemporaryFolder;

TEST_F(Checkpoint, KeepsTheOneBefore) {
  const auto path = folder_ / "checkpoint.safetensors";
  const Context context(1);
  Trainer<float> trainer(new_training<float>(small()), context);
  save_checkpoint(path, trainer.state());
  run(trainer, 3);
  save_checkpoint(path, trainer.state());
  EXPECT_EQ(load_checkpoint<float>(path).step, 3);
  EXPECT_EQ(load_checkpoint<float>(path.string() + ".previous").step, 0);
}

TEST_F(Checkpoint, RefusesEveryTruncation) {
  const auto path = folder_ / "checkpoint.safetensors", cut = folder_ / "cut.safetensors";
  save_checkpoint(path, new_training<float>(small()));
  const auto bytes = read_file(path);
  const std::string text(as_text(bytes));
  for (std::size_t size : {std::size_t{0}, std::size_t{4}, std::size_t{8}, text.size() / 2, text.size() - 1}) {
    std::ofstream(cut, std::ios::binary) << text.substr(0, size);
    EXPECT_THROW(load_checkpoint<float>(cut), Error) << size;
  }
  std::ofstream(cut, std::ios::binary) << text << "x";
  EXPECT_THROW(load_checkpoint<float>(cut), Error);
}

// Whatever byte of the file it is in: the header, a name, the options, a weight.
TEST_F(Checkpoint, NoticesAFlippedBit) {
  const auto path = folder_ / "checkpoint.safetensors", flipped = folder_ / "flipped.safetensors";
  save_checkpoint(path, new_training<float>(small()));
  const auto bytes = read_file(path);
  const std::string text(as_text(bytes));
  std::size_t bit = 0;
  for (std::size_t at = 0; at < text.size(); at += 97, ++bit) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit % 8));
    std::ofstream(flipped, std::ios::binary) << damaged;
    EXPECT_THROW(load_checkpoint<float>(flipped), Error) << "bit " << bit % 8 << " of byte " << at;
  }
}

TEST_F(Checkpoint, RefusesForeignFiles) {
  const auto path = folder_ / "checkpoint.safetensors";
  EXPECT_THROW(load_checkpoint<float>(folder_ / "none"), Error);
  save_checkpoint(path, new_training<float>(small()));
  EXPECT_THROW(load_checkpoint<double>(path), Error);  // another precision

  const auto refused = [&](auto change) {
    Safetensors file = read_safetensors(path);
    change(file);
    file.metadata.insert_or_assign("hash", checkpoint_hash(file));
    write_safetensors(folder_ / "changed.safetensors", file);
    EXPECT_THROW(load_checkpoint<float>(folder_ / "changed.safetensors"), Error);
  };
  refused([](Safetensors& f) { f.metadata.clear(); });
  refused([](Safetensors& f) { f.metadata.insert_or_assign("heedful", "checkpoint 99"); });
  refused([](Safetensors& f) { f.metadata.insert_or_assign("options", "{"); });
  refused([](Safetensors& f) { f.metadata.insert_or_assign("options", R"({"model": {"heads": 3}})"); });
  refused([](Safetensors& f) { f.metadata.insert_or_assign("step", "-1"); });
  refused([](Safetensors& f) { f.metadata.insert_or_assign("step", "2.5"); });
  refused([](Safetensors& f) { f.metadata.insert_or_assign("step", "1e99"); });
  refused([](Safetensors& f) { f.metadata.insert_or_assign("random", "[1]"); });
  refused([](Safetensors& f) { f.metadata.insert_or_assign("random", "[1, 2, 3, 5, true, 4294967296]"); });
  refused([](Safetensors& f) { f.arrays.erase("token_embedding"); });
  refused([](Safetensors& f) { f.arrays.emplace("surplus", f.arrays.at("token_embedding")); });
  refused([](Safetensors& f) {
    std::swap(f.arrays.at("token_embedding").shape[0], f.arrays.at("token_embedding").shape[1]);
  });
}

TEST(Trainer, ALossThatIsNotFiniteStopsItAndKeepsTheParameters) {
  TrainOptions options = small();
  options.adam.learning_rate = 1e5;
  options.model.norm_epsilon = 1e-300;
  const Context context(1);
  TrainingState<float> state = new_training<float>(options);
  state.decoder.parameters.fill(1e30f);
  Trainer<float> trainer(std::move(state), context);
  EXPECT_THROW(run(trainer, 40), Error);
  EXPECT_EQ(trainer.state().decoder.parameters(0), 1e30f);
}

TEST(Trainer, RefusesImpossibleOptions) {
  const auto refused = [](auto change) {
    TrainOptions options = small();
    change(options);
    EXPECT_THROW(new_training<float>(options), Error);
  };
  refused([](TrainOptions& o) { o.adam.learning_rate = NAN; });
  refused([](TrainOptions& o) { o.adam.learning_rate = -1; });
  refused([](TrainOptions& o) { o.adam.beta1 = 1; });
  refused([](TrainOptions& o) { o.batch = 0; });
  refused([](TrainOptions& o) { o.steps = -1; });
  refused([](TrainOptions& o) { o.task.length = 0; });
  refused([](TrainOptions& o) { o.task.alphabet = 0; });
  refused([](TrainOptions& o) { o.model.vocabulary = 99; });
}

TEST(Task, BatchIsQuestionSeparatorAnswer) {
  for (TaskKind kind : {TaskKind::copy, TaskKind::sort, TaskKind::reverse}) {
    const Task task{kind, 4, 20};
    Batch<float> batch = make_batch<float>(task, 50);
    Random random(3);
    draw_batch(batch, task, random);
    for (Index b = 0; b < 50; ++b) {
      const auto expected = answer(kind, std::span(&batch.tokens(b, 0), 4));
      EXPECT_EQ(batch.tokens(b, 4), 20);
      for (Index t = 0; t < 8; ++t) EXPECT_EQ(batch.loss_weights(b, t), t < 4 ? 0 : 1);
      for (Index t = 0; t < 7; ++t) EXPECT_EQ(batch.targets(b, t), batch.tokens(b, t + 1));
      for (Index t = 0; t < 4; ++t) EXPECT_EQ(batch.targets(b, 4 + t), expected[static_cast<std::size_t>(t)]);
    }
  }
}

TEST(Task, Answers) {
  const std::vector<Index> question = {3, 1, 2, 1};
  EXPECT_EQ(answer(TaskKind::copy, question), question);
  EXPECT_EQ(answer(TaskKind::sort, question), (std::vector<Index>{1, 1, 2, 3}));
  EXPECT_EQ(answer(TaskKind::reverse, question), (std::vector<Index>{1, 2, 1, 3}));
}

// A model of chance scores 1/alphabet; the score must be able to be bad.
TEST(Evaluate, AnUntrainedModelGuesses) {
  const TrainOptions options = small();
  const TrainingState<float> state = new_training<float>(options);
  const Accuracy accuracy = evaluate<float>(Context(1), state.decoder, options.task, 500, 999);
  EXPECT_LT(accuracy.token, 0.5);
  EXPECT_LT(accuracy.sequence, 0.1);
}

TEST(Evaluate, ATrainedModelAnswers) {
  for (TaskKind kind : {TaskKind::copy, TaskKind::sort, TaskKind::reverse}) {
    TrainOptions options = small(kind);
    options.steps = 600;
    options.adam.learning_rate = 1e-2;
    const Context context(1);
    Trainer<float> trainer(new_training<float>(options), context);
    run(trainer, options.steps);
    const Accuracy accuracy = evaluate<float>(context, trainer.state().decoder, options.task, 200, 999);
    EXPECT_GT(accuracy.sequence, 0.9) << static_cast<int>(kind);
  }
}

}  // namespace
}  // namespace heedful
