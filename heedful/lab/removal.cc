#include "heedful/lab/removal.h"

#include <cmath>

#include "heedful/lab/altered_forward.h"

namespace heedful {
namespace {

constexpr Index kSeparator = 20, kLength = 12;
constexpr Index kSequence[kLength] = {17, 3, 0, 12, 7, 9, kSeparator, 17, 3, 0, 12, 7};

// log P(answer | question), summed over the answer's tokens.
double answer_log_probability(View<const double, 2> logits) {  // [T, V]
  double sum = 0;
  for (Index i = kAnswerBegin; i < kLength; ++i) {
    double largest = logits(i, 0), total = 0;
    for (Index v = 1; v < logits.extent(1); ++v) largest = std::max(largest, logits(i, v));
    for (Index v = 0; v < logits.extent(1); ++v) total += std::exp(logits(i, v) - largest);
    sum += logits(i, kSequence[i - kAnswerBegin]) - largest - std::log(total);
  }
  return sum;
}

}  // namespace

Tensor<Index, 2> map_sequence() {
  Tensor<Index, 2> tokens({1, kLength});
  std::copy(std::begin(kSequence), std::end(kSequence), tokens.begin());
  return tokens;
}

std::vector<std::string> map_labels() {
  std::vector<std::string> labels;
  for (const Index token : kSequence) labels.push_back(token == kSeparator ? "SEP" : fmt::format("{}", token));
  return labels;
}

Tensor<double, 4> removal_effects(const Context& context, const Decoder<double>& decoder) {
  constexpr Index kPairs = kLength * (kLength + 1) / 2;
  const Index L = decoder.config.layers, H = decoder.config.heads;
  Tensor<double, 4> effects({L, H, kLength, kLength});
  Tensor<Index, 2> tokens({kPairs, kLength});
  for (Index b = 0; b < kPairs; ++b) std::copy(std::begin(kSequence), std::end(kSequence), &tokens(b, 0));
  Tensor<bool, 4> keep({kPairs, H, kLength, kLength});
  Activations<double> activations;
  const double base = answer_log_probability(altered_forward<double>(context, activations, decoder, map_sequence(),
                                                                     [](AttentionOptions<double>&, Index) {})[0]);
  for (Index l = 0; l < L; ++l) {
    for (Index h = 0; h < H; ++h) {
      keep.fill(true);
      for (Index i = 0, b = 0; i < kLength; ++i) {
        for (Index j = 0; j <= i; ++j) keep(b++, h, i, j) = false;
      }
      const auto logits = altered_forward<double>(context, activations, decoder, tokens,
                                                  [&](AttentionOptions<double>& options, Index layer) {
                                                    if (layer != l) return;
                                                    options.keep = keep;
                                                    options.empty_row = EmptyRow::zero;
                                                  });
      for (Index i = 0, b = 0; i < kLength; ++i) {
        for (Index j = 0; j <= i; ++j) effects(l, h, i, j) = base - answer_log_probability(logits[b++]);
      }
    }
  }
  return effects;
}

}  // namespace heedful
