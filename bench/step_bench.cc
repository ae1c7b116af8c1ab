// Whole steps of training, and generation: forward, loss, backward and Adam on one batch. A row gives the time, what
// the closed form of the operations comes to a second and as a share of this machine's limit, and the deviation: of
// the gradients from those in double, of generated logits with the cache from those without.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>

#include "bench/clock.h"
#include "bench/contest.h"
#include "bench/machine.h"
#include "heedful/decoder/cost.h"
#include "heedful/inference/generate.h"
#include "heedful/training/trainer.h"

namespace heedful {
namespace {

// A decoder and a batch to train it on.
template <class T>
struct Problem {
  Decoder<T> decoder;
  Batch<T> batch;
};

// The article's: width 32, 4 heads, 2 layers, copying 6 of 20 symbols, 32 sequences of 12.
template <class T>
Problem<T> article() {
  TrainOptions options;
  fit_model_to_task(options);
  Random random(1);
  Decoder<T> decoder{options.model, initial_parameters<T>(options.model, random)};
  Batch<T> batch = make_batch<T>(options.task, options.batch);
  draw_batch(batch, options.task, random);
  return {std::move(decoder), std::move(batch)};
}

// GPT-2's shape at width 384, 6 heads, 6 layers, on 8 sequences of 256 bytes.
template <class T>
Problem<T> gpt() {
  constexpr Index kSequences = 8, kLength = 256, kBytes = 256;
  const DecoderConfig config{.vocabulary = kBytes,
                             .context = kLength,
                             .width = 384,
                             .heads = 6,
                             .kv_heads = 6,
                             .layers = 6,
                             .feed_forward = 1536,
                             .activation = FeedForward::gelu_tanh};
  Random random(1);
  Decoder<T> decoder{config, initial_parameters<T>(config, random)};
  Batch<T> batch;
  batch.tokens = Tensor<Index, 2>({kSequences, kLength});
  batch.targets = Tensor<Index, 2>({kSequences, kLength});
  batch.loss_weights = Tensor<T, 2>({kSequences, kLength});
  for (Index& token : batch.tokens) token = random.integer(0, kBytes);
  for (Index& token : batch.targets) token = random.integer(0, kBytes);
  batch.loss_weights.fill(1);
  return {std::move(decoder), std::move(batch)};
}

// Floating-point operations of a step by the closed form: products three times the forward pass', attention 3.5 times
// its forward pass on the pairs that a causal mask leaves. Nothing is taken off for positions without loss.
double step_operations(const DecoderConfig& config, Index sequences, Index length) {
  const double tokens = static_cast<double>(sequences * length);
  const double pair = 4 * static_cast<double>(config.layers * config.width);  // of one pair in every layer
  const double products =
      static_cast<double>(decoder_cost(config, 1, 4).flops_per_token) - pair * static_cast<double>(config.context);
  return tokens * (3 * products + 3.5 * pair * (static_cast<double>(length) + 1) / 2);
}

// The largest |got − exact|, in parts of the largest |exact|.
template <class T>
double deviation(const Tensor<T, 1>& got, const Tensor<double, 1>& exact) {
  double worst = 0, largest = 0;
  for (Index i = 0; i < exact.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(got(i)) - exact(i)));
    largest = std::max(largest, std::abs(exact(i)));
  }
  return worst / largest;
}

template <class T>
double gradient_deviation(const Context& context, const Problem<T>& problem) {
  Problem<double> wide;
  wide.decoder = {problem.decoder.config, Tensor<double, 1>(problem.decoder.parameters.extents())};
  std::copy(problem.decoder.parameters.begin(), problem.decoder.parameters.end(), wide.decoder.parameters.begin());
  wide.batch.tokens = problem.batch.tokens.copy();
  wide.batch.targets = problem.batch.targets.copy();
  wide.batch.loss_weights = Tensor<double, 2>(problem.batch.loss_weights.extents());
  std::copy(problem.batch.loss_weights.begin(), problem.batch.loss_weights.end(), wide.batch.loss_weights.begin());
  Tensor<T, 1> got(problem.decoder.parameters.extents());
  Tensor<double, 1> exact(got.extents());
  Activations<T> activations;
  Activations<double> wide_activations;
  decoder_loss_and_gradients(context, got, activations, problem.decoder, problem.batch);
  decoder_loss_and_gradients(context, exact, wide_activations, wide.decoder, wide.batch);
  return deviation(got, exact);
}

template <class T>
void step(benchmark::State& state, Problem<T> problem, int threads) {
  const Context context(threads);
  Activations<T> activations;
  Tensor<T, 1> gradients(problem.decoder.parameters.extents());
  Tensor<T, 1> first(gradients.extents()), second(gradients.extents());
  const double off = gradient_deviation(context, problem);
  double peak = peak_gflops<T>(context);
  Index steps = 0;
  const double seconds = time_row(state, threads, [&] {
    decoder_loss_and_gradients(context, gradients, activations, problem.decoder, problem.batch);
    adam_step<T>(context, problem.decoder.parameters, {first, second}, gradients, ++steps, {});
  });
  peak = std::max(peak, peak_gflops<T>(context));
  const auto& tokens = problem.batch.tokens;
  const double rate = step_operations(problem.decoder.config, tokens.extent(0), tokens.extent(1)) / seconds * 1e-9;
  state.counters["GFLOP/s"] = rate;
  state.counters["of_peak"] = rate / peak;
  state.counters["tokens/s"] = static_cast<double>(tokens.size()) / seconds;
  state.counters["deviation"] = off;
}

// All 18 trainings of the article's table side by side, each on one thread; once, for they take long.
void trainings(benchmark::State& state, int threads) {
  constexpr Index kSeeds = 3;
  std::vector<TrainOptions> runs;
  for (const TaskKind kind : {TaskKind::copy, TaskKind::sort}) {
    for (const Index length : {8, 6, 4}) {  // the longest first
      for (Index seed = 0; seed < kSeeds; ++seed) {
        TrainOptions& options = runs.emplace_back();
        options.task = {.kind = kind, .length = length};
        options.seed = static_cast<std::uint64_t>(seed);
        fit_model_to_task(options);
      }
    }
  }
  const Context context(threads), alone;
  for (auto _ : state) {
    const double begin = clock_seconds(threads);
    context.parallel_for(static_cast<Index>(runs.size()), [&](Index run) {
      Trainer<float> trainer(new_training<float>(runs[static_cast<std::size_t>(run)]), alone);
      while (trainer.state().step < trainer.state().options.steps) trainer.step();
    });
    state.SetIterationTime(clock_seconds(threads) - begin);
  }
}

// The article's toy for the key-value cache: 4 layers, width 256, 8 heads, 128 tokens after 32. Its listing has
// attention alone; ours has norms, an unembedding and the narrowest feed-forward besides.
template <class T>
void generation(benchmark::State& state, bool cache, int threads) {
  constexpr Index kPrompt = 32, kTokens = 128;
  const DecoderConfig config{.vocabulary = 64,
                             .context = kPrompt + kTokens,
                             .width = 256,
                             .heads = 8,
                             .kv_heads = 8,
                             .layers = 4,
                             .feed_forward = 1};
  Random random(5);
  const Decoder<T> decoder{config, initial_parameters<T>(config, random)};
  Tensor<Index, 2> prompt({1, kPrompt});
  for (Index& token : prompt) token = random.integer(0, config.vocabulary);
  const Context context(threads);
  GenerateOptions options;
  options.tokens = kTokens;
  options.cache = !cache;
  const auto other = generate<T>(context, decoder, prompt, options);
  options.cache = cache;
  Generation<T> made;
  const double seconds = time_row(state, threads, [&] { made = generate<T>(context, decoder, prompt, options); });
  state.counters["tokens/s"] = static_cast<double>(kTokens) / seconds;
  double worst = 0;
  for (Index i = 0; i < made.logits.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(made.logits.data()[i] - other.logits.data()[i])));
  }
  state.counters["deviation"] = worst;
}

template <class T>
void add_all(const std::string& type) {
  register_row("step/article/" + type,
               [](benchmark::State& state, int threads) { step<T>(state, article<T>(), threads); });
  register_row("step/gpt/" + type, [](benchmark::State& state, int threads) { step<T>(state, gpt<T>(), threads); });
  register_row("generate/cache/" + type,
               [](benchmark::State& state, int threads) { generation<T>(state, true, threads); });
  register_row("generate/no_cache/" + type,
               [](benchmark::State& state, int threads) { generation<T>(state, false, threads); });
}

const int registered =
    (add_all<float>("f32"), add_all<double>("f64"), register_row("step/18_trainings/f32", trainings), 0);

}  // namespace
}  // namespace heedful
