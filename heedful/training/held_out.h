// The score of a model on the held-out part of a corpus: loss per token (nats) and bits per byte of the text.
//
// Every held-out token but the first is a target once. A decoder reads fixed windows side by side: window i predicts
// tokens i·T + 1 … i·T + T from those before them in the window, T = its context, the last window shorter; a sample of
// n windows takes those at ⌊i·windows/n⌋. An n-gram model reads all that stands before.
#ifndef HEEDFUL_TRAINING_HELD_OUT_H_
#define HEEDFUL_TRAINING_HELD_OUT_H_

#include "heedful/core/context.h"
#include "heedful/decoder/decoder.h"
#include "heedful/training/corpus.h"
#include "heedful/training/ngram.h"

namespace heedful {

struct TextScore {
  Index tokens = 0, bytes = 0;
  double nats = 0;

  void add(double token_nats, Index token_bytes);
  double loss() const;           // per token; NaN where none was scored
  double bits_per_byte() const;  // NaN likewise
};

struct HeldOutScore {
  TextScore fresh;  // tokens of lines that training does not hold: the score
  TextScore all;    // every token, as others report it
};

HeldOutScore score(const Corpus& corpus, const NGram& model);

// `windows` of them, or all for 0. Throws Error where the vocabularies differ.
template <class T>
HeldOutScore score(const Context& context, const Corpus& corpus, const Decoder<T>& decoder, Index windows);

}  // namespace heedful

#endif  // HEEDFUL_TRAINING_HELD_OUT_H_
