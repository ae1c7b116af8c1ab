// Attention without the matrix of scores: the same contract as attention_forward and attention_backward
// (attention.h), in O(Tq + Tk) memory beside inputs and outputs.
//
//     for each chunk c of kChunk = 256 keys, at absolute positions:
//         m(c) = max over the chunk of s(i,·),  p = exp(s − m(c)),  l(c) = Σ p,  o(c) = p·v
//     left to right:  M = max(m, m(c));  l = l·exp(m − M) + l(c)·exp(m(c) − M);  o likewise;  m = M
//     out(i) = o / l
//
// What holds, bit for bit: a row of `out` (and of what else is asked for) depends on its own query, the keys and
// values it sees and their positions, the options, and nothing else: not on threads, batch, other queries, chunks of
// a prompt, a cache, padding on the right, nor on the instruction set. Hidden keys and values may be NaN or infinite.
// Decoding is the case Tq = 1; with fewer (sequence, head) pairs than threads the chunks themselves are shared out.
//
// Error: each product is one ascending chain of fused multiply-adds (over D for a score, over 256 keys for an
// output), the sum of a row runs on 16 lanes; so the error grows with 256 + Tk/256 where the naive code's grows with
// Tk.
//
// Sources: Milakov & Gimelshein, arXiv:1805.02867 (online softmax); Dao et al., arXiv:2205.14135 and arXiv:2307.08691
// (tiles, backward from the row statistics).
#ifndef HEEDFUL_ATTENTION_FUSED_H_
#define HEEDFUL_ATTENTION_FUSED_H_

#include "heedful/attention/attention.h"

namespace heedful {

template <class T>
void fused_attention_forward(const Context& context, const AttentionOutputs<T>& outputs,
                             const AttentionInputs<T>& inputs, const AttentionOptions<T>& options);

// For each chunk, from its keys and the saved row statistics:
//     P = exp(s − row_max)/row_sum,  dP = dout·vᵀ,  dS = P ∘ (dP − Σ_e dout∘out)
//     dv += Pᵀ·dout,  dk += scale·dS'ᵀ·q,  dq += scale·dS'·k
template <class T>
void fused_attention_backward(const Context& context, const AttentionGradients<T>& gradients, In<T, 4> dout,
                              const AttentionInputs<T>& inputs, const AttentionSaved<T>& saved,
                              const AttentionOptions<T>& options);

}  // namespace heedful

#endif  // HEEDFUL_ATTENTION_FUSED_H_
