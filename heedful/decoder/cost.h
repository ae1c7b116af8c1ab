// What a decoder costs before it is built: closed forms, in parameters, bytes and operations.
//
//     one block           4C² + 4C (attention, H = G) + 2CF + F + C (feed-forward) + 4C (norms)
//                         = 12C² + 13C at F = 4C
//     key-value cache     2 · L · G · D · T · B · bytes                 keys and values of every layer and position
//     score matrix        B · H · T² · bytes                            of one layer, where it is stored at all
//     operations a token  2 · (matrix parameters) + 2 · L · H · 2D · T  forward, at context T
//
// Source: Kaplan et al., arXiv:2001.08361, §2.1, for the operations; Shazeer, arXiv:1911.02150, for the cache.
#ifndef HEEDFUL_DECODER_COST_H_
#define HEEDFUL_DECODER_COST_H_

#include <string>
#include <vector>

#include "heedful/decoder/config.h"

namespace heedful {

struct CostEntry {
  std::string name;
  Index parameters = 0;
};

struct DecoderCost {
  std::vector<CostEntry> block_entries;    // one block, entry by entry
  std::vector<CostEntry> outside_entries;  // embeddings, final norm, unembedding; empty when the vocabulary is 0
  Index block_parameters = 0;
  Index total_parameters = 0;  // all blocks + what is outside them
  Index parameter_bytes = 0;
  Index kv_cache_bytes = 0;    // a KvCache rounds the positions of its keys up to a multiple of 16
  Index score_bytes = 0;       // of one layer
  Index activation_bytes = 0;  // what one training step keeps for its backward pass
  Index flops_per_token = 0;   // forward, of the token at the end of the context
};

// `element_bytes` is the size of a stored number. A vocabulary of 0 counts the blocks alone. Throws Error where the
// config makes no decoder or a figure does not fit 63 bits.
DecoderCost decoder_cost(const DecoderConfig& config, Index batch, Index element_bytes);

}  // namespace heedful

#endif  // HEEDFUL_DECODER_COST_H_
