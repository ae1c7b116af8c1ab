#include "heedful/inspection/scalar_decoder.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "heedful/attention/position.h"
#include "heedful/core/dual.h"
#include "heedful/decoder/parameters.h"

namespace heedful {
namespace {

using std::erf;
using std::exp;
using std::log;
using std::sqrt;
using std::tanh;

template <class S>
using Row = std::vector<S>;
template <class S>
using Rows = std::vector<Row<S>>;  // one sequence: [T][C]

template <class S>
Row<S> linear(const Row<S>& x, const LinearWeights<const S>& w) {
  Row<S> y;
  for (Index o = 0; o < w.weight.extent(1); ++o) {
    S sum = w.bias.empty() ? S(0) : w.bias[o];
    for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * w.weight(static_cast<Index>(i), o);
    y.push_back(sum);
  }
  return y;
}

template <class S>
Row<S> norm(const Row<S>& x, const NormWeights<const S>& w, const DecoderConfig& config) {
  const S n(static_cast<double>(x.size()));
  S mean(0), variance(0);
  if (config.norm == Norm::layer) {
    for (const S& value : x) mean += value / n;
  }
  for (const S& value : x) variance += (value - mean) * (value - mean) / n;
  Row<S> y;
  for (std::size_t c = 0; c < x.size(); ++c) {
    const S normalized = (x[c] - mean) / sqrt(variance + S(config.norm_epsilon));
    const auto at = static_cast<Index>(c);
    y.push_back(normalized * w.gain[at] + (w.bias.empty() ? S(0) : w.bias[at]));
  }
  return y;
}

template <class S>
S activate(const S& x, FeedForward kind) {
  switch (kind) {
    case FeedForward::relu:
      return S(0) < x ? x : S(0);
    case FeedForward::gelu:
      return x * (S(1) + erf(x * S(std::numbers::sqrt2 / 2))) * S(0.5);
    case FeedForward::gelu_tanh:
      return x * (S(1) + tanh(S(std::sqrt(2 / std::numbers::pi)) * (x + S(0.044715) * x * x * x))) * S(0.5);
    case FeedForward::swiglu:
      return x / (S(1) + exp(-x));
  }
  return x;
}

template <class S>
Row<S> feed_forward(const Row<S>& x, const BlockWeights<const S>& w, const DecoderConfig& config) {
  Row<S> hidden = linear(x, w.up);
  const Row<S> gate = config.gated() ? linear(x, w.gate) : hidden;
  for (std::size_t f = 0; f < hidden.size(); ++f) {
    const S open = activate(gate[f], config.activation);
    hidden[f] = config.gated() ? open * hidden[f] : open;
  }
  return linear(hidden, w.down);
}

// Turns the pairs of every head of one row at position t.
template <class S>
void rotate(Row<S>& x, Index t, const DecoderConfig& config) {
  const Index width = config.head_width(), half = width / 2;
  const bool split = config.rotary_layout == RotaryLayout::half_split;
  for (Index head = 0; head < static_cast<Index>(x.size()) / width; ++head) {
    for (Index pair = 0; pair < half; ++pair) {
      const double exponent = -2.0 * static_cast<double>(pair) / static_cast<double>(width);
      const double angle = static_cast<double>(t) * std::pow(config.rotary_base, exponent);
      S& a = x[static_cast<std::size_t>(head * width + (split ? pair : 2 * pair))];
      S& b = x[static_cast<std::size_t>(head * width + (split ? pair + half : 2 * pair + 1))];
      const S first = a * S(std::cos(angle)) - b * S(std::sin(angle));
      b = a * S(std::sin(angle)) + b * S(std::cos(angle));
      a = first;
    }
  }
}

template <class S>
S score(const S& raw, Index head, Index distance, const DecoderConfig& config) {
  S result = raw;
  if (config.scale) result = result / S(std::sqrt(static_cast<double>(config.head_width())));
  if (config.softcap > 0) result = S(config.softcap) * tanh(result / S(config.softcap));
  if (config.position == Position::alibi) {
    result = result - S(alibi_slopes(config.heads)(head) * static_cast<double>(distance));
  }
  return result;
}

// One query head at query i: the weighted mean of the values it sees.
template <class S>
Row<S> attend(const Row<S>& query, const Rows<S>& keys, const Rows<S>& values, Index head, Index i,
              const DecoderConfig& config) {
  const Index width = config.head_width();
  const auto q = static_cast<std::size_t>(head * width);
  const auto kv = static_cast<std::size_t>(head / (config.heads / config.kv_heads) * width);
  const Index first = config.window == 0 ? 0 : std::max(Index{0}, i - config.window + 1);
  Row<S> weights;
  for (Index j = first; j <= i; ++j) {
    S raw(0);
    for (std::size_t d = 0; d < static_cast<std::size_t>(width); ++d) {
      raw += query[q + d] * keys[static_cast<std::size_t>(j)][kv + d];
    }
    weights.push_back(score(raw, head, i - j, config));
  }
  S largest = weights[0], sum(0);
  for (const S& weight : weights) largest = largest < weight ? weight : largest;
  for (S& weight : weights) sum += weight = exp(weight - largest);
  Row<S> out(static_cast<std::size_t>(width), S(0));
  for (std::size_t n = 0; n < weights.size(); ++n) {
    for (std::size_t d = 0; d < out.size(); ++d) {
      out[d] += weights[n] / sum * values[static_cast<std::size_t>(first) + n][kv + d];
    }
  }
  return out;
}

template <class S>
Rows<S> self_attention(const Rows<S>& x, const BlockWeights<const S>& w, const DecoderConfig& config) {
  Rows<S> queries, keys, values, y;
  for (std::size_t t = 0; t < x.size(); ++t) {
    queries.push_back(linear(x[t], w.query));
    keys.push_back(linear(x[t], w.key));
    values.push_back(linear(x[t], w.value));
    if (config.position != Position::rotary) continue;
    rotate(queries[t], static_cast<Index>(t), config);
    rotate(keys[t], static_cast<Index>(t), config);
  }
  for (std::size_t t = 0; t < x.size(); ++t) {
    Row<S> heads;
    for (Index head = 0; head < config.heads; ++head) {
      const Row<S> out = attend(queries[t], keys, values, head, static_cast<Index>(t), config);
      heads.insert(heads.end(), out.begin(), out.end());
    }
    y.push_back(linear(heads, w.output));
  }
  return y;
}

template <class S>
void add(Row<S>& x, const Row<S>& branch) {
  for (std::size_t c = 0; c < x.size(); ++c) x[c] += branch[c];
}

template <class S>
void block(Rows<S>& x, const BlockWeights<const S>& w, const DecoderConfig& config) {
  const bool pre = config.norm_placement == NormPlacement::pre;
  Rows<S> input = x;
  if (pre) {
    for (auto& row : input) row = norm(row, w.attention_norm, config);
  }
  const Rows<S> attended = self_attention(input, w, config);
  for (std::size_t t = 0; t < x.size(); ++t) {
    add(x[t], attended[t]);
    if (!pre) x[t] = norm(x[t], w.attention_norm, config);
    add(x[t], feed_forward(pre ? norm(x[t], w.feed_forward_norm, config) : x[t], w, config));
    if (!pre) x[t] = norm(x[t], w.feed_forward_norm, config);
  }
}

template <class S>
Rows<S> embed(const View<const Index, 1>& tokens, const DecoderWeights<const S>& w, const DecoderConfig& config) {
  Rows<S> x;
  for (Index t = 0; t < tokens.extent(0); ++t) {
    Row<S> row;
    for (Index c = 0; c < config.width; ++c) {
      S value = w.token_embedding(tokens[t], c);
      if (config.position == Position::learned) value += w.position_embedding(t, c);
      if (config.position == Position::sinusoidal) {
        const double exponent = static_cast<double>(c - c % 2) / static_cast<double>(config.width);
        const double angle = static_cast<double>(t) / std::pow(10000.0, exponent);
        value += S(c % 2 == 0 ? std::sin(angle) : std::cos(angle));
      }
      row.push_back(value);
    }
    x.push_back(row);
  }
  return x;
}

}  // namespace

template <class Scalar>
Scalar scalar_loss(const DecoderConfig& config, const Scalar* parameters, const ScalarBatch& batch) {
  const auto weights = bind_weights<const Scalar>(config, parameters);
  Scalar loss(0);
  double total = 0;
  for (Index b = 0; b < batch.tokens.extent(0); ++b) {
    Rows<Scalar> x = embed<Scalar>(batch.tokens[b], weights, config);
    for (const auto& w : weights.blocks) block(x, w, config);
    for (Index t = 0; t < batch.tokens.extent(1); ++t) {
      const double counted = batch.loss_weights(b, t);
      if (counted == 0) continue;
      const Row<Scalar> logits =
          linear(norm(x[static_cast<std::size_t>(t)], weights.final_norm, config), weights.unembedding);
      const Scalar& right = logits[static_cast<std::size_t>(batch.targets(b, t))];
      Scalar sum(0);
      for (const Scalar& logit : logits) sum += exp(logit - right);
      loss += Scalar(counted) * log(sum);
      total += counted;
    }
  }
  return loss / Scalar(total);
}

template double scalar_loss<double>(const DecoderConfig&, const double*, const ScalarBatch&);
template Dual scalar_loss<Dual>(const DecoderConfig&, const Dual*, const ScalarBatch&);

}  // namespace heedful
