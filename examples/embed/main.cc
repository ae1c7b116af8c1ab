// Trains a decoder to copy short sequences, saves it, loads it into a second one and lets that one answer. Everything a
// program needs to embed heedful; run it with the path of a file to write.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "heedful/core/error.h"
#include "heedful/inference/generate.h"
#include "heedful/training/checkpoint.h"
#include "heedful/training/trainer.h"

namespace {

heedful::TrainOptions copy_three_of_eight_symbols() {
  heedful::TrainOptions options;
  options.task = {.kind = heedful::TaskKind::copy, .length = 3, .alphabet = 8};
  options.model.width = 16;
  options.model.heads = 2;
  options.model.kv_heads = 2;
  options.model.layers = 1;
  options.model.feed_forward = 32;
  options.adam.learning_rate = 1e-2;
  options.steps = 500;
  heedful::fit_model_to_task(options);
  return options;
}

void train_and_save(const heedful::Context& context, const char* path) {
  heedful::Trainer<float> trainer(heedful::new_training<float>(copy_three_of_eight_symbols()), context);
  while (trainer.state().step < trainer.state().options.steps) trainer.step();
  fmt::print("trained {} parameters for {} steps, loss {:.4f}\n", trainer.state().decoder.parameters.size(),
             trainer.state().step, trainer.state().loss);
  heedful::save_checkpoint(path, trainer.state());
}

bool load_and_answer(const heedful::Context& context, const char* path) {
  const auto state = heedful::load_checkpoint<float>(path);
  const heedful::Task& task = state.options.task;
  heedful::Tensor<heedful::Index, 2> prompt({1, task.length + 1});  // the question, then the separator
  std::ranges::copy(std::array{5, 0, 7, static_cast<int>(task.separator())}, prompt.begin());
  const auto answer = heedful::generate(context, state.decoder, prompt.view(), {.tokens = task.length});
  fmt::print("{} -> {}\n", fmt::join(prompt, " "), fmt::join(answer.tokens, " "));
  return std::equal(answer.tokens.begin(), answer.tokens.end(), prompt.begin());
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    fmt::print(stderr, "usage: embed FILE.safetensors\n");
    return 2;
  }
  try {
    const heedful::Context context(1);  // threads
    train_and_save(context, arguments[1]);
    return load_and_answer(context, arguments[1]) ? 0 : 1;
  } catch (const heedful::Error& error) {
    fmt::print(stderr, "embed: {}\n", error.what());
    return 2;
  }
}
