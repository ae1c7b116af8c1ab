// The border of attention: every shape and option is checked here, once, whichever path does the work after.
#ifndef HEEDFUL_ATTENTION_ATTENTION_SHAPES_H_
#define HEEDFUL_ATTENTION_ATTENTION_SHAPES_H_

#include "heedful/attention/attention.h"
#include "heedful/core/view.h"

namespace heedful {

struct AttentionShape {
  Index B, Tq, Tk, H, G, D, E;

  Index kv_head(Index h) const { return h / (H / G); }
};

// Each throws Error naming the first contradiction found. D, E, H and G are at least 1; B, Tq and Tk may be 0.
template <class T>
AttentionShape check_attention(const AttentionInputs<T>& inputs, const AttentionOptions<T>& options);
template <class T>
void refuse_cache(const AttentionInputs<T>& inputs);  // for what reads k and v alone
template <class T>
void check_outputs(const AttentionShape& shape, const AttentionOutputs<T>& outputs);
template <class T>
void check_backward(const AttentionShape& shape, const AttentionGradients<T>& gradients, In<T, 4> dout,
                    const AttentionSaved<T>& saved, const AttentionOptions<T>& options);

// scale, or 1/√D where none was given.
template <class T>
double score_scale(const AttentionShape& shape, const AttentionOptions<T>& options);

// The same numbers under the full extents: an axis of extent 1 is shared by all indices.
template <class T, int Rank>
View<T, Rank> broadcast(View<T, Rank> view, const std::type_identity_t<Extents<Rank>>& extents) {
  Extents<Rank> strides = view.strides();
  for (std::size_t axis = 0; axis < Rank; ++axis) {
    if (view.extents()[axis] == 1 && extents[axis] != 1) strides[axis] = 0;
  }
  return View<T, Rank>(view.data(), extents, strides);
}

}  // namespace heedful

#endif  // HEEDFUL_ATTENTION_ATTENTION_SHAPES_H_
