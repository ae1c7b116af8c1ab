// All parameters of a decoder in one contiguous buffer, and the named inventory of what lies where. Gradients and the
// optimizer's moments have the same layout, so Adam, saving and gradient checks walk one array.
#ifndef HEEDFUL_DECODER_PARAMETERS_H_
#define HEEDFUL_DECODER_PARAMETERS_H_

#include <string>
#include <vector>

#include "heedful/core/random.h"
#include "heedful/core/tensor.h"
#include "heedful/decoder/config.h"

namespace heedful {

// One linear layer y = x·weight + bias; the bias is empty where the config has none.
template <class T>
struct LinearWeights {
  View<T, 2> weight;  // [inputs, outputs]
  View<T, 1> bias;    // [outputs]
};

template <class T>
struct NormWeights {
  View<T, 1> gain;  // [C]
  View<T, 1> bias;  // [C], empty for RMS normalization or without biases
};

template <class T>
struct BlockWeights {
  LinearWeights<T> query;   // [C, H·D]
  LinearWeights<T> key;     // [C, G·D]
  LinearWeights<T> value;   // [C, G·D]
  LinearWeights<T> output;  // [H·D, C]
  NormWeights<T> attention_norm, feed_forward_norm;
  LinearWeights<T> gate;  // [C, F], gated feed-forward only
  LinearWeights<T> up;    // [C, F]
  LinearWeights<T> down;  // [F, C]
};

template <class T>
struct DecoderWeights {
  View<T, 2> token_embedding;     // [V, C]
  View<T, 2> position_embedding;  // [context, C], learned positions only
  std::vector<BlockWeights<T>> blocks;
  NormWeights<T> final_norm;
  LinearWeights<T> unembedding;  // [C, V]; the token embedding transposed where tied
};

struct ParameterEntry {
  std::string name;          // "block.0.attention.query.weight"
  std::vector<Index> shape;  // one or two extents
  Index offset = 0;          // into the buffer
  Index size() const;
};

std::vector<ParameterEntry> parameter_inventory(const DecoderConfig& config);
Index parameter_count(const DecoderConfig& config);

// The views of a decoder's weights on a buffer of parameter_count(config) numbers.
template <class T>
DecoderWeights<T> bind_weights(const DecoderConfig& config, T* buffer);

// Draws initial parameters as the article does: matrices normal / √inputs, embeddings normal · 0.1, biases 0, gains
// 1, in inventory order. A config without learned positions draws and drops that table, so that an ablation of the
// position starts from the same numbers everywhere else.
template <class T>
Tensor<T, 1> initial_parameters(const DecoderConfig& config, Random& random);

}  // namespace heedful

#endif  // HEEDFUL_DECODER_PARAMETERS_H_
