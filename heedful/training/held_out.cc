#include "heedful/training/held_out.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>

#include "heedful/core/error.h"
#include "heedful/kernels/cross_entropy.h"

namespace heedful {
namespace {

constexpr Index kWindowsTogether = 16;  // read as one batch; changes no bit of a score

void add(HeldOutScore& score, const Corpus& corpus, Index at, double nats) {
  const auto i = static_cast<std::size_t>(at);
  const Index bytes = corpus.tokenizer.bytes_of(corpus.held_out()[i]);
  score.all.add(nats, bytes);
  if (corpus.fresh[i]) score.fresh.add(nats, bytes);
}

}  // namespace

void TextScore::add(double token_nats, Index token_bytes) {
  nats += token_nats;
  ++tokens;
  bytes += token_bytes;
}

double TextScore::loss() const {
  return nats / static_cast<double>(tokens);
}

double TextScore::bits_per_byte() const {
  return nats / std::numbers::ln2 / static_cast<double>(bytes);
}

HeldOutScore score(const Corpus& corpus, const NGram& model) {
  const TokensView text = corpus.held_out();
  HeldOutScore result;
  for (Index at = 1; at < std::ssize(text); ++at) {
    const auto i = static_cast<std::size_t>(at);
    add(result, corpus, at, -std::log(model.probability(text.substr(0, i), text[i])));
  }
  return result;
}

template <class T>
HeldOutScore score(const Context& context, const Corpus& corpus, const Decoder<T>& decoder, Index windows) {
  const Index length = decoder.config.context;
  require(decoder.config.vocabulary == corpus.tokenizer.vocabulary(), "held-out", "vocabulary: expected {}, got {}",
          corpus.tokenizer.vocabulary(), decoder.config.vocabulary);
  const TokensView text = corpus.held_out();
  const Index targets = std::ssize(text) - 1, all = (targets + length - 1) / length;
  const Index wanted = windows == 0 ? all : std::min(windows, all);

  HeldOutScore result;
  Activations<T> activations;
  for (Index first = 0; first < wanted; first += kWindowsTogether) {
    const Index rows = std::min(kWindowsTogether, wanted - first);
    Batch<T> batch = make_windows<T>(rows, length);
    Tensor<Index, 2> places({rows, length});  // of each target in the held-out part; 0 past its end
    for (Index b = 0; b < rows; ++b) {
      const Index begin = (first + b) * all / wanted * length;
      for (Index t = 0; t < length; ++t) {
        const bool there = begin + t < targets;
        places(b, t) = there ? begin + t + 1 : 0;
        batch.tokens(b, t) = there ? static_cast<Index>(text[static_cast<std::size_t>(begin + t)]) : 0;
        batch.targets(b, t) = there ? static_cast<Index>(text[static_cast<std::size_t>(begin + t + 1)]) : 0;
        if (!there) batch.loss_weights(b, t) = 0;
      }
    }
    decoder_forward<T>(context, activations, decoder, batch.tokens);
    Tensor<double, 1> losses({rows * length});
    const std::span<const Index> flat(batch.targets.data(), static_cast<std::size_t>(batch.targets.size()));
    const View<const T, 1> weights(batch.loss_weights.data(), {batch.loss_weights.size()});
    cross_entropy<T>(context, {{}, losses}, activations.logits, flat, weights);
    for (Index n = 0; n < losses.size(); ++n) {
      if (places.data()[n] > 0) add(result, corpus, places.data()[n], losses(n));
    }
  }
  return result;
}

template HeldOutScore score<float>(const Context&, const Corpus&, const Decoder<float>&, Index);
template HeldOutScore score<double>(const Context&, const Corpus&, const Decoder<double>&, Index);

}  // namespace heedful
