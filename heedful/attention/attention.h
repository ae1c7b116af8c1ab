// Scaled dot-product attention, forward and backward.
//
//     s(i,j) = scale · q(i)·k(j)                                 raw scores           [B, H, Tq, Tk]
//     s      = softcap · tanh(s / softcap)                       where softcap > 0
//     s      = s + bias(i,j) − slope(h) · |p(i) − j|             where given
//     P(i,·) = softmax over the visible j of s(i,·)              hidden j are excluded, not set to a large negative
//     out(i) = Σ_j P(i,j) · v(j)                                                      [B, H, Tq, E]
//
// in this order. A hidden key or value takes no part in any sum, so NaN there cannot leak. Query head h reads
// key-value head h / (H / G): H = G is multi-head, G = 1 multi-query, anything between grouped attention.
//
// The matrix of scores is never stored, unless asked for: memory beside inputs and outputs is O(Tq + Tk).
//     for each chunk c of kChunk = 256 keys, at absolute positions:
//         m(c) = max over the chunk of s(i,·),  p = exp(s − m(c)),  l(c) = Σ p,  o(c) = p·v
//     left to right:  M = max(m, m(c));  l = l·exp(m − M) + l(c)·exp(m(c) − M);  o likewise;  m = M
//     out(i) = o / l
// So, bit for bit, a row of `out` (and of what else is asked for) depends on its own query, the keys and values it
// sees and their positions, the options, and nothing else: not on threads, batch, other queries, chunks of a prompt, a
// cache, padding on the right, nor on the instruction set. Decoding is the case Tq = 1; with fewer (sequence, head)
// pairs than threads the chunks themselves are shared out.
//
// Error: each product is one ascending chain of fused multiply-adds (over D for a score, over 256 keys for an output),
// the sum of a row runs on 16 lanes; so the error grows with 256 + Tk/256 where the naive code's grows with Tk.
//
// Source: Vaswani et al., arXiv:1706.03762, §3.2; grouped heads: Ainslie et al., arXiv:2305.13245; ALiBi: Press et
// al., arXiv:2108.12409; softcap: Gemma Team, arXiv:2408.00118, §2; order of operations: ONNX Attention,
// opset 23; online softmax: Milakov & Gimelshein, arXiv:1805.02867; tiles, and backward from the row statistics: Dao
// et al., arXiv:2205.14135 and arXiv:2307.08691.
//
// Letters: B batch, Tq queries, Tk keys, H query heads, G key-value heads, D query/key width, E value width.
#ifndef HEEDFUL_ATTENTION_ATTENTION_H_
#define HEEDFUL_ATTENTION_ATTENTION_H_

#include <optional>

#include "heedful/core/context.h"
#include "heedful/core/half.h"
#include "heedful/core/view.h"

namespace heedful {

// Where the queries stand among the keys: key j has position j, query i has position p(i). It matters to causality,
// windows and ALiBi alone.
enum class Alignment {
  square,        // p(i) = i; refused unless Tq = Tk, so that nothing is guessed
  top_left,      // p(i) = i
  bottom_right,  // p(i) = i + Tk − Tq: the last query stands on the last key, as when the first keys are a cache
  offsets,       // p(i) = query_offsets[b] + i: one position a sequence
};

enum class EmptyRow {
  refuse,  // a query that sees no key throws Error
  zero,    // its output, weights and gradients are 0 and its log-sum-exp is −∞
};

// Every view is optional; one that is not given has no data. An extent written B|1 may be 1 and is then shared.
template <class T>
struct AttentionOptions {
  std::optional<double> scale = {};  // none: 1/√D; 1 leaves the scores as they are
  double softcap = 0;                // 0: off

  View<const T, 4> bias = {};  // [B|1, H|1, Tq, Tk], finite or −∞ (hides the key); never read where hidden
  View<const double, 1> alibi_slopes = {};  // [H]

  Alignment alignment = Alignment::square;
  View<const Index, 1> query_offsets = {};  // [B], with Alignment::offsets and only then
  bool causal = false;                      // j ≤ p(i)
  Index window = 0;                         // 0: off; W: |p(i) − j| < W, so W counts the current token

  View<const bool, 4> keep = {};              // [B|1, H|1, Tq, Tk]; true = may look
  View<const Index, 1> key_lengths = {};      // [B]; keys at and after the length are padding
  View<const Index, 2> query_documents = {};  // [B, Tq] and
  View<const Index, 2> key_documents = {};    // [B, Tk]: a query sees the keys of its own document; both or neither

  EmptyRow empty_row = EmptyRow::refuse;
};

// Keys of a panel, which stand side by side: panel[d][n] is number d of key n, so that one vector is one column of
// several keys. 16 on every instruction set, whatever its vectors hold.
inline constexpr Index kPanel = 16;

// Besides q, of keys and values either k and v, or, for attention_forward alone, what a KvCache lends: key_panels and
// v, or key_panels_bf16 and v_bf16. The result has the bits of k and v that hold the same numbers; those in bfloat16
// are widened, which is exact, where they are read.
template <class T>
struct AttentionInputs {
  View<const T, 4> q;  // [B, H, Tq, D]
  View<const T, 4> k;  // [B, G, Tk, D]
  View<const T, 4> v;  // [B, G, Tk, E]
  // [B, G, ⌈Tk/16⌉, D, 16], the panels of a head without a gap between them: key j is column j mod 16 of panel j/16.
  // The columns behind the last key may hold anything.
  View<const T, 5> key_panels = {};
  View<const Bfloat16, 5> key_panels_bf16 = {};  // the same
  View<const Bfloat16, 4> v_bf16 = {};           // [B, G, Tk, E]
};

// What the forward pass writes. Only `out` is required; asking for more changes nothing else.
template <class T>
struct AttentionOutputs {
  View<T, 4> out;               // [B, H, Tq, E]
  View<T, 3> row_max = {};      // [B, H, Tq] largest visible score, and
  View<T, 3> row_sum = {};      // [B, H, Tq] Σ exp(s − row_max): what the backward pass needs; both or neither
  View<T, 3> log_sum_exp = {};  // [B, H, Tq] row_max + log(row_sum)
  View<T, 4> weights = {};      // [B, H, Tq, Tk] P, 0 where hidden
  View<T, 4> scores = {};       // [B, H, Tq, Tk] what enters the softmax, −∞ where hidden
};

// What the backward pass writes: assigned, but for dbias, which is a parameter's and is added to.
template <class T>
struct AttentionGradients {
  View<T, 4> dq;          // [B, H, Tq, D]
  View<T, 4> dk;          // [B, G, Tk, D]
  View<T, 4> dv;          // [B, G, Tk, E]
  View<T, 4> dbias = {};  // [B|1, H|1, Tq, Tk] as the bias, optional
};

// What the backward pass reads of the forward pass.
template <class T>
struct AttentionSaved {
  View<const T, 4> out;      // [B, H, Tq, E]
  View<const T, 3> row_max;  // [B, H, Tq]
  View<const T, 3> row_sum;  // [B, H, Tq]
};

// Throws Error where shapes or options contradict one another, or a row is empty and empty_row is refuse. A visible
// number that is not finite is carried into the result as the formula carries it; attention_reference refuses it.
// Outputs must not overlap inputs.
template <class T>
void attention_forward(const Context& context, const AttentionOutputs<T>& outputs, const AttentionInputs<T>& inputs,
                       const AttentionOptions<T>& options);

// With P from q, k and the saved row statistics, dP = dout·vᵀ and dS = P ∘ (dP − Σ_j P∘dP), where Σ_j P∘dP =
// dout·out:
//     dv = Pᵀ·dout     dq = scale · dS'·k     dk = scale · dS'ᵀ·q     dbias += dS
// where dS' = dS ∘ (1 − tanh²) behind a softcap. Heads of a group add into their shared dk, dv in ascending order.
template <class T>
void attention_backward(const Context& context, const AttentionGradients<T>& gradients, In<T, 4> dout,
                        const AttentionInputs<T>& inputs, const AttentionSaved<T>& saved,
                        const AttentionOptions<T>& options);

}  // namespace heedful

#endif  // HEEDFUL_ATTENTION_ATTENTION_H_
