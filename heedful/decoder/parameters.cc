#include "heedful/decoder/parameters.h"

#include <cmath>
#include <utility>

#include "heedful/core/check.h"
#include "heedful/core/dual.h"
#include "heedful/core/error.h"

namespace heedful {
namespace {

enum class Start { matrix, embedding, zero, one };

// Walks the buffer from its start. Placing the weights, listing them and drawing them are the same walk, so they
// cannot disagree; `visit(name, shape, offset, start)` is called for each tensor.
template <class T, class Visit>
class Walk {
 public:
  Walk(T* buffer, Visit visit) : buffer_(buffer), visit_(std::move(visit)) {}

  View<T, 2> matrix(const std::string& name, Extents<2> shape, Start start) {
    visit_(name, std::vector<Index>{shape[0], shape[1]}, offset_, start);
    return {advance(shape[0] * shape[1]), shape};
  }
  View<T, 1> vector(const std::string& name, Index size, Start start) {
    visit_(name, std::vector<Index>{size}, offset_, start);
    return {advance(size), {size}};
  }
  LinearWeights<T> linear(const std::string& name, Index inputs, Index outputs, bool bias) {
    LinearWeights<T> weights;
    weights.weight = matrix(name + ".weight", {inputs, outputs}, Start::matrix);
    if (bias) weights.bias = vector(name + ".bias", outputs, Start::zero);
    return weights;
  }
  NormWeights<T> norm(const std::string& name, const DecoderConfig& config) {
    NormWeights<T> weights;
    weights.gain = vector(name + ".gain", config.width, Start::one);
    if (config.bias && config.norm == Norm::layer) weights.bias = vector(name + ".bias", config.width, Start::zero);
    return weights;
  }

 private:
  T* advance(Index size) {
    T* here = buffer_ == nullptr ? nullptr : buffer_ + offset_;
    offset_ += size;
    return here;
  }
  T* buffer_;
  Visit visit_;
  Index offset_ = 0;
};

template <class T, class Visit>
DecoderWeights<T> walk_weights(const DecoderConfig& config, T* buffer, Visit visit) {
  Walk<T, Visit> walk(buffer, std::move(visit));
  DecoderWeights<T> weights;
  weights.token_embedding = walk.matrix("token_embedding", {config.vocabulary, config.width}, Start::embedding);
  if (config.position == Position::learned) {
    weights.position_embedding = walk.matrix("position_embedding", {config.context, config.width}, Start::embedding);
  }
  for (Index layer = 0; layer < config.layers; ++layer) {
    const std::string block = fmt::format("block.{}.", layer);
    BlockWeights<T> b;
    b.query = walk.linear(block + "attention.query", config.width, config.width, config.bias);
    b.key = walk.linear(block + "attention.key", config.width, config.key_width(), config.bias);
    b.value = walk.linear(block + "attention.value", config.width, config.key_width(), config.bias);
    b.output = walk.linear(block + "attention.output", config.width, config.width, config.bias);
    b.attention_norm = walk.norm(block + "attention_norm", config);
    b.feed_forward_norm = walk.norm(block + "feed_forward_norm", config);
    if (config.gated()) {
      b.gate = walk.linear(block + "feed_forward.gate", config.width, config.feed_forward, config.bias);
    }
    b.up = walk.linear(block + "feed_forward.up", config.width, config.feed_forward, config.bias);
    b.down = walk.linear(block + "feed_forward.down", config.feed_forward, config.width, config.bias);
    weights.blocks.push_back(b);
  }
  weights.final_norm = walk.norm("final_norm", config);
  if (!config.tied) {
    weights.unembedding = walk.linear("unembedding", config.width, config.vocabulary, config.output_bias);
  } else {
    weights.unembedding.weight = weights.token_embedding.transpose();
    if (config.output_bias)
      weights.unembedding.bias = walk.vector("unembedding.bias", config.vocabulary, Start::zero);
  }
  return weights;
}

}  // namespace

Index ParameterEntry::size() const {
  Index product = 1;
  for (Index extent : shape) product *= extent;
  return product;
}

std::vector<ParameterEntry> parameter_inventory(const DecoderConfig& config) {
  validate(config);
  std::vector<ParameterEntry> entries;
  walk_weights<const float>(config, nullptr,
                            [&](const std::string& name, std::vector<Index> shape, Index offset, Start) {
                              entries.push_back({name, std::move(shape), offset});
                            });
  return entries;
}

Index parameter_count(const DecoderConfig& config) {
  const auto entries = parameter_inventory(config);
  return entries.back().offset + entries.back().size();
}

template <class T>
DecoderWeights<T> bind_weights(const DecoderConfig& config, T* buffer) {
  HEEDFUL_CHECK(buffer != nullptr);
  return walk_weights<T>(config, buffer, [](const std::string&, const std::vector<Index>&, Index, Start) {});
}

template <class T>
Tensor<T, 1> initial_parameters(const DecoderConfig& config, Random& random) {
  Tensor<T, 1> parameters({parameter_count(config)});
  const auto draw = [&](const std::string& name, const std::vector<Index>& shape, Index offset, Start start) {
    const Index size = shape.size() == 2 ? shape[0] * shape[1] : shape[0];
    T* data = parameters.data() + offset;
    const double root = std::sqrt(static_cast<double>(shape[0]));
    for (Index i = 0; i < size; ++i) {
      switch (start) {
        case Start::matrix:
          data[i] = static_cast<T>(random.normal() / root);
          break;
        case Start::embedding:
          data[i] = static_cast<T>(0.1 * random.normal());
          break;
        case Start::zero:
          data[i] = 0;
          break;
        case Start::one:
          data[i] = 1;
          break;
      }
    }
    if (name == "token_embedding" && config.position != Position::learned) {
      for (Index i = 0; i < config.context * config.width; ++i) random.normal();
    }
  };
  walk_weights<T>(config, parameters.data(), draw);
  return parameters;
}

#define HEEDFUL_INSTANTIATE(T)                                                            \
  template DecoderWeights<T> bind_weights<T>(const DecoderConfig& config, T*);            \
  template DecoderWeights<const T> bind_weights<const T>(const DecoderConfig&, const T*); \
  template Tensor<T, 1> initial_parameters<T>(const DecoderConfig&, Random&);
HEEDFUL_INSTANTIATE(float)
HEEDFUL_INSTANTIATE(double)
#undef HEEDFUL_INSTANTIATE
template DecoderWeights<const Dual> bind_weights<const Dual>(const DecoderConfig&, const Dual*);

}  // namespace heedful
