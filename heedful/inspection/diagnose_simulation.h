// Attention as a recipe of small steps, in double, so that any one of them can be spoilt on purpose.
//
//     load → rotate → score → cap → add_bias → look → hide → normalize → mix → merge
//
// A Recipe holds the steps and the small decisions that the steps ask for; correct_recipe() is attention as
// attention/attention.h defines it. A fault (faults.h) replaces or wraps one of them. walk() carries out a recipe and
// keeps every intermediate array, together with the error that the declared type's rounding may leave in it
// (docs/diagnosis.md, "Rounding").
#ifndef HEEDFUL_INSPECTION_DIAGNOSE_SIMULATION_H_
#define HEEDFUL_INSPECTION_DIAGNOSE_SIMULATION_H_

#include <functional>

#include "heedful/inspection/diagnose_case.h"
#include "heedful/inspection/diagnose_rounding.h"

namespace heedful::diagnosis {

struct Walk;
struct GradientWalk;  // diagnose_gradients.h

using Stage = std::function<void(Walk&)>;
using Sees = std::function<bool(const Walk&, Index b, Index h, Index i, Index j)>;
using Place = std::function<Index(const Walk&, Index b, Index i)>;
using Head = std::function<Index(const Walk&, Index h)>;
using GradientStage = std::function<void(GradientWalk&)>;

// The backward pass, in its order. Its default steps are in diagnose_gradients.cc.
struct GradientRecipe {
  GradientStage recompute;        // p, from the scores and the log-sum-exp
  GradientStage value_gradient;   // dv of each query head = pᵀ · dout
  GradientStage weight_gradient;  // dp = dout · vᵀ
  GradientStage row_sum;          // Σ_j p · dp
  GradientStage score_gradient;   // ds = p · (dp − row_sum), through the softcap
  GradientStage query_gradient;   // dq = scale · ds · k
  GradientStage key_gradient;     // dk of each query head = scale · dsᵀ · q
  GradientStage gather;           // the heads of a group add into their shared dk, dv
  GradientStage unrotate;         // dq, dk back to before the rotary positions
};

struct Recipe {
  // Decisions.
  std::function<double(const Walk&)> scale;
  Head key_head, value_head;                      // of query head h
  Place position;                                 // p(i), for causality and the window
  Sees causal, window, padding, keep, documents;  // each: may query i look at key j, as far as I am concerned?
  Sees sees;                                      // all of them together
  Place query_rotation, key_rotation;             // the position by which a row is rotated
  std::function<double(const Walk&, Index m)> frequency;  // of pair m
  std::function<RotaryLayout(const Walk&)> layout;
  EmptyRowValue declared_empty_row = EmptyRowValue::zero;  // of a row that is meant to see nothing
  EmptyRowValue other_empty_row = EmptyRowValue::zero;     // of a row that sees nothing by mistake

  // Stages.
  Stage load;       // q, k, v as they come
  Stage rotate;     // rotary positions
  Stage score;      // scores = scale · q·k
  Stage cap;        // softcap
  Stage add_bias;   //
  Stage look;       // visible
  Stage hide;       // excluded = not visible
  Stage normalize;  // weights, lse: softmax over the keys that are not excluded
  Stage mix;        // out = weights · v, excluded keys unread
  std::function<void(const Walk&, Tensor<double, 4>& heads)> merge;  // where each head's output goes

  GradientRecipe backward;
};

Recipe correct_recipe(const DeclaredAttention& declared);

struct Walk {
  Walk(const AttentionCase& attention_case, const Recipe& steps);

  const AttentionCase& given;
  const Recipe& recipe;
  const Rounding& type;
  const Index B, H, G, Tq, Tk, D, E;

  Tensor<double, 4> q, k, v;          // [B, H, Tq, D], [B, G, Tk, D], [B, G, Tk, E]
  Tensor<double, 4> scores;           // [B, H, Tq, Tk]
  Tensor<double, 4> capped;           // [B, H, Tq, Tk] scores behind the softcap, before the bias
  Tensor<double, 4> score_error;      // [B, H, Tq, Tk] absolute, one standard deviation
  Tensor<bool, 4> visible, excluded;  // [B, H, Tq, Tk]
  Tensor<double, 4> weights;          // [B, H, Tq, Tk]
  Tensor<double, 4> weight_error;     // [B, H, Tq, Tk] a fault that rounds adds its own share here and in out_error
  Tensor<double, 3> lse, lse_error;   // [B, H, Tq]
  Tensor<double, 4> out, out_error;   // [B, H, Tq, E]
  bool empty_by_mistake = false;      // a row saw nothing though it was meant to

  double bias(Index b, Index h, Index i, Index j) const;           // of the case, which must have one
  bool is_meant_to_see(Index b, Index h, Index i, Index j) const;  // whatever the recipe does
  void fill_empty_row(Index b, Index h, Index i);
};

// Carries out the recipe on the case, which must outlive the walk, as must the recipe.
Walk walk(const AttentionCase& given, const Recipe& recipe);

// Turns every pair of the rows of x [B, heads, T, D] by its row's position, or back by it with direction −1.
void turn(const Walk& w, Tensor<double, 4>& x, const Place& place, double direction);

}  // namespace heedful::diagnosis

#endif  // HEEDFUL_INSPECTION_DIAGNOSE_SIMULATION_H_
