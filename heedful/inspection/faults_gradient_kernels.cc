// Mistakes in the matrix products of the backward pass: the wrong operand, a missing transpose, heads of a group that
// overwrite instead of adding, rotary positions left in.
#include <algorithm>

#include "heedful/inspection/diagnose_gradients.h"
#include "heedful/inspection/faults.h"

namespace heedful::diagnosis {
namespace {

bool is_square(const AttentionCase& given) {
  return given.Tq() == given.Tk();
}
bool has_equal_widths(const AttentionCase& given) {
  return given.D() == given.E();
}
bool has_like_queries_and_keys(const AttentionCase& given) {
  return is_square(given) && given.H() == given.G();
}

// dk(g) and dv(g) from the heads h = first … first + group − 1 by combine(sum so far, head's value, group).
template <class Combine>
void gather_by(Recipe& r, const Combine& combine) {
  r.backward.gather = [combine](GradientWalk& g) {
    const Walk& w = g.forward;
    const Index group = w.H / w.G;
    const auto gather = [&](Tensor<double, 4>& to, const Tensor<double, 4>& heads, Index size) {
      for (Index b = 0; b < w.B; ++b) {
        for (Index h = 0; h < w.H; ++h) {
          double* sum = &to(b, h / group, 0, 0);
          const double* head = &heads(b, h, 0, 0);
          for (Index at = 0; at < size; ++at) sum[at] = combine(sum[at], head[at], h % group, group);
        }
      }
    };
    gather(g.dk, g.dk_of_head, w.Tk * w.D);
    gather(g.dv, g.dv_of_head, w.Tk * w.E);
  };
}

void last_head_of_group(Recipe& r) {
  gather_by(r, [](double, double head, Index, Index) { return head; });
}

void first_head_of_group(Recipe& r) {
  gather_by(r, [](double sum, double head, Index member, Index) { return member == 0 ? head : sum; });
}

void mean_of_group(Recipe& r) {
  gather_by(r, [](double sum, double head, Index, Index group) { return sum + head / static_cast<double>(group); });
}

// Head h adds into key-value head h mod G.
void gathered_tiled(Recipe& r) {
  r.backward.gather = [](GradientWalk& g) {
    const Walk& w = g.forward;
    for (Index b = 0; b < w.B; ++b) {
      for (Index h = 0; h < w.H; ++h) {
        for (Index at = 0; at < w.Tk * w.D; ++at) (&g.dk(b, h % w.G, 0, 0))[at] += (&g.dk_of_head(b, h, 0, 0))[at];
        for (Index at = 0; at < w.Tk * w.E; ++at) (&g.dv(b, h % w.G, 0, 0))[at] += (&g.dv_of_head(b, h, 0, 0))[at];
      }
    }
  };
}

void dv_from_ds(Recipe& r) {
  r.backward.gather = [gather = r.backward.gather](GradientWalk& g) {
    const Walk& w = g.forward;
    g.dv_of_head.fill(0);
    for_each_weight(g, [&](Index b, Index h, Index i, Index j) {
      for (Index e = 0; e < w.E; ++e) g.dv_of_head(b, h, j, e) += g.ds(b, h, i, j) * w.given.dout(b, h, i, e);
    });
    gather(g);
  };
}

void dv_from_out(Recipe& r) {
  r.backward.value_gradient = [](GradientWalk& g) {
    const Walk& w = g.forward;
    for_each_weight(g, [&](Index b, Index h, Index i, Index j) {
      for (Index e = 0; e < w.E; ++e) g.dv_of_head(b, h, j, e) += g.p(b, h, i, j) * w.out(b, h, i, e);
    });
  };
}

// dv = p·dout instead of pᵀ·dout.
void dv_untransposed(Recipe& r) {
  r.backward.value_gradient = [](GradientWalk& g) {
    const Walk& w = g.forward;
    for_each_weight(g, [&](Index b, Index h, Index i, Index j) {
      for (Index e = 0; e < w.E; ++e) g.dv_of_head(b, h, i, e) += g.p(b, h, i, j) * w.given.dout(b, h, j, e);
    });
  };
}

void dk_untransposed(Recipe& r) {
  r.backward.key_gradient = [](GradientWalk& g) {
    const Walk& w = g.forward;
    const double scale = w.recipe.scale(w);
    for_each_weight(g, [&](Index b, Index h, Index i, Index j) {
      for (Index d = 0; d < w.D; ++d) g.dk_of_head(b, h, i, d) += scale * g.ds(b, h, i, j) * w.q(b, h, j, d);
    });
  };
}

void dq_transposed(Recipe& r) {
  r.backward.query_gradient = [](GradientWalk& g) {
    const Walk& w = g.forward;
    const double scale = w.recipe.scale(w);
    for_each_weight(g, [&](Index b, Index h, Index i, Index j) {
      const Index kv = w.recipe.key_head(w, h);
      for (Index d = 0; d < w.D; ++d) g.dq(b, h, j, d) += scale * g.ds(b, h, i, j) * w.k(b, kv, i, d);
    });
  };
}

void dq_dk_swapped(Recipe& r) {
  r.backward.unrotate = [right = r.backward.unrotate](GradientWalk& g) {
    right(g);
    std::swap(g.dq, g.dk);
  };
}

void dk_dv_swapped(Recipe& r) {
  r.backward.unrotate = [right = r.backward.unrotate](GradientWalk& g) {
    right(g);
    std::swap(g.dk, g.dv);
  };
}

void dq_from_weights(Recipe& r) {
  r.backward.query_gradient = [](GradientWalk& g) {
    const Walk& w = g.forward;
    const double scale = w.recipe.scale(w);
    for_each_weight(g, [&](Index b, Index h, Index i, Index j) {
      const Index kv = w.recipe.key_head(w, h);
      for (Index d = 0; d < w.D; ++d) g.dq(b, h, i, d) += scale * g.p(b, h, i, j) * w.k(b, kv, j, d);
    });
  };
}

void scores_detached(Recipe& r) {
  r.backward.score_gradient = [](GradientWalk&) {};
}

void values_detached(Recipe& r) {
  r.backward.value_gradient = [](GradientWalk&) {};
}

void not_unrotated(Recipe& r) {
  r.backward.unrotate = [](GradientWalk&) {};
}

void rotated_again(Recipe& r) {
  r.backward.unrotate = [](GradientWalk& g) {
    const Walk& w = g.forward;
    if (!w.given.declared.rotary) return;
    turn(w, g.dq, w.recipe.query_rotation, 1);
    turn(w, g.dk, w.recipe.key_rotation, 1);
  };
}

void keys_not_unrotated(Recipe& r) {
  r.backward.unrotate = [](GradientWalk& g) {
    const Walk& w = g.forward;
    if (w.given.declared.rotary) turn(w, g.dq, w.recipe.query_rotation, -1);
  };
}

}  // namespace

std::vector<Fault> gradient_kernel_faults() {
  using enum Group;
  const std::string_view add = "Add the gradients of all query heads that share a key-value head.";
  const std::string_view undo = "Turn dq and dk back by their positions.";
  return {
      {"grad_group_last", gradients, kGather, last_head_of_group, "dk and dv hold the last head of each group",
       "right with H = G", add},
      {"grad_group_first", gradients, kGather, first_head_of_group, "dk and dv hold the first head of each group",
       "right with H = G", add},
      {"grad_group_mean", gradients, kGather, mean_of_group, "dk and dv hold the mean of each group",
       "too small by H / G", add},
      {"grad_group_tiled", gradients, kGather, gathered_tiled, "head h adds into key-value head h mod G",
       "right with H = G or G = 1", "Add head h into key-value head h / (H / G)."},
      {"grad_dv_from_ds", gradients, kValueGradient | kGather, dv_from_ds, "dv = dSᵀ·dout",
       "dv sums to 0 over the keys", "dv = Pᵀ·dout."},
      {"grad_dv_from_out", gradients, kValueGradient, dv_from_out, "dv = Pᵀ·out", "dv does not react to dout",
       "dv = Pᵀ·dout."},
      {"grad_dv_untransposed", gradients, kValueGradient, dv_untransposed, "dv = P·dout",
       "right where P is symmetric", "dv = Pᵀ·dout.", is_square},
      {"grad_dk_untransposed", gradients, kKeyGradient, dk_untransposed, "dk = dS·q", "right where dS is symmetric",
       "dk = dSᵀ·q.", is_square},
      {"grad_dq_transposed", gradients, kQueryGradient, dq_transposed, "dq = dSᵀ·k", "right where dS is symmetric",
       "dq = dS·k.", is_square},
      {"grad_dq_dk_swapped", gradients, kUnrotate, dq_dk_swapped, "dq and dk are returned in each other's place",
       "needs equal shapes to go unseen", "Return dq, dk, dv in this order.", has_like_queries_and_keys},
      {"grad_dk_dv_swapped", gradients, kUnrotate, dk_dv_swapped, "dk and dv are returned in each other's place",
       "needs D = E to go unseen", "Return dq, dk, dv in this order.", has_equal_widths},
      {"grad_dq_from_weights", gradients, kQueryGradient, dq_from_weights, "dq = P·k instead of dS·k",
       "dq does not react to dout", "dq = scale · dS·k."},
      {"grad_scores_detached", gradients, kScoreGradient, scores_detached, "no gradient flows through the weights",
       "dq and dk are 0", "Carry dS on to q and k."},
      {"grad_values_detached", gradients, kValueGradient, values_detached, "no gradient flows into the values",
       "dv is 0", "dv = Pᵀ·dout."},
      {"grad_position_not_undone", gradients, kUnrotate, not_unrotated, "dq and dk are left in the rotated frame",
       "right at position 0", undo},
      {"grad_position_rotated_again", gradients, kUnrotate, rotated_again, "dq and dk are turned forward again",
       "right at position 0", undo},
      {"grad_position_keys_not_undone", gradients, kUnrotate, keys_not_unrotated, "dk is left in the rotated frame",
       "dq is right", undo},
  };
}

}  // namespace heedful::diagnosis
