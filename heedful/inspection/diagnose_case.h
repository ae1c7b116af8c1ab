// What `diagnose` is given: the inputs of an attention, what it was meant to compute, and what it answered.
//
// Letters as in attention/attention.h. Everything is held in double: a value read from float, half or bfloat16 is
// exact there. An array that was not given is empty.
#ifndef HEEDFUL_INSPECTION_DIAGNOSE_CASE_H_
#define HEEDFUL_INSPECTION_DIAGNOSE_CASE_H_

#include <optional>
#include <string>
#include <vector>

#include "heedful/attention/attention.h"
#include "heedful/attention/rotary.h"
#include "heedful/core/tensor.h"
#include "heedful/formats/array.h"

namespace heedful {

template <class T, int Rank>
bool is_given(const Tensor<T, Rank>& x) {
  return x.size() > 0;
}

// Rotary position (Su et al., arXiv:2104.09864): pair m turns by position · base^(−2m/D).
struct DeclaredRotary {
  RotaryLayout layout = RotaryLayout::half_split;
  double base = 10000;
  Index width = 0;  // 0: all of D; otherwise the first `width` numbers of a head turn
};

// What a row that may look at nothing holds.
enum class EmptyRowValue { zero, nan, mean };

// What the implementation is meant to compute.
struct DeclaredAttention {
  DataType type = DataType::f32;  // the type it computes in: f64, f32, bf16 or f16
  std::optional<double> scale;    // none: 1/√D
  double softcap = 0;             // 0: off
  bool causal = false;
  Alignment alignment = Alignment::square;
  std::vector<Index> query_offsets;      // [B] with Alignment::offsets
  Index window = 0;                      // 0: off; W: |p(i) − j| < W
  std::vector<Index> key_lengths;        // [B] or none
  bool left_padded = false;              // the padding stands before the keys, not after
  std::vector<Index> query_documents;    // [B·Tq] and
  std::vector<Index> key_documents;      // [B·Tk]: a query sees the keys of its own document
  std::optional<DeclaredRotary> rotary;  // q and k are given before the rotation
  std::vector<Index> query_positions;    // [B·Tq] and
  std::vector<Index> key_positions;      // [B·Tk], with rotary
  EmptyRowValue empty_row = EmptyRowValue::zero;
};

struct AttentionCase {
  std::string name;  // of the probe or file
  DeclaredAttention declared;
  Tensor<double, 4> q;     // [B, H, Tq, D]
  Tensor<double, 4> k;     // [B, G, Tk, D]
  Tensor<double, 4> v;     // [B, G, Tk, E]
  Tensor<double, 4> bias;  // [B|1, H|1, Tq, Tk]
  Tensor<bool, 4> keep;    // [B|1, H|1, Tq, Tk], true = may look
  Tensor<double, 4> dout;  // [B, H, Tq, E], where gradients are asked for

  AttentionCase copy() const;
  Index B() const { return q.extent(0); }
  Index H() const { return q.extent(1); }
  Index G() const { return k.extent(1); }
  Index Tq() const { return q.extent(2); }
  Index Tk() const { return k.extent(2); }
  Index D() const { return q.extent(3); }
  Index E() const { return v.extent(3); }
  Index rotary_width() const { return declared.rotary->width > 0 ? declared.rotary->width : D(); }
  bool has_gradients() const { return is_given(dout); }
};

// What an implementation answered to a case. Only `out` is required.
struct AttentionAnswer {
  Tensor<double, 4> out;      // [B, H, Tq, E]
  Tensor<double, 4> weights;  // [B, H, Tq, Tk]
  Tensor<double, 3> lse;      // [B, H, Tq]
  Tensor<double, 4> dq;       // as q, with dout
  Tensor<double, 4> dk;       // as k
  Tensor<double, 4> dv;       // as v

  AttentionAnswer copy() const;
};

// Throws Error naming the first array whose shape contradicts the others, an option that does not fit, or a number
// that is visible and not finite.
void check_case(const AttentionCase& given);
void check_answer(const AttentionCase& given, const AttentionAnswer& answer);

}  // namespace heedful

#endif  // HEEDFUL_INSPECTION_DIAGNOSE_CASE_H_
