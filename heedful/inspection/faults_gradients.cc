// Mistakes in the backward pass behind a right forward pass: the softmax's Jacobian, the scale, the mask, the heads
// of a group. Σ_j dS(i,j) = 0 and ⟨J·u, v⟩ = ⟨u, Jᵀ·v⟩ give most of them away.
#include <algorithm>
#include <cmath>

#include "heedful/inspection/diagnose_gradients.h"
#include "heedful/inspection/faults.h"

namespace heedful::diagnosis {
namespace {

void scale_by(Tensor<double, 4>& x, double factor) {
  for (double& element : x) element *= factor;
}

void row_sum_missing(Recipe& r) {
  r.backward.row_sum = [](GradientWalk&) {};
}

void row_sum_of_dp(Recipe& r) {
  r.backward.row_sum = [](GradientWalk& g) {
    for_each_weight(g, [&](Index b, Index h, Index i, Index j) { g.row_sum(b, h, i) += g.dp(b, h, i, j); });
  };
}

void row_sum_mean(Recipe& r) {
  r.backward.row_sum = [](GradientWalk& g) {
    Tensor<Index, 3> count(g.row_sum.extents());
    for_each_weight(g, [&](Index b, Index h, Index i, Index j) {
      g.row_sum(b, h, i) += g.dp(b, h, i, j);
      ++count(b, h, i);
    });
    for (Index at = 0; at < count.size(); ++at) {
      if (count.data()[at] > 0) g.row_sum.data()[at] /= static_cast<double>(count.data()[at]);
    }
  };
}

void row_sum_added(Recipe& r) {
  r.backward.row_sum = [right = r.backward.row_sum](GradientWalk& g) {
    right(g);
    for (double& sum : g.row_sum) sum = -sum;
  };
}

void row_sum_over_queries(Recipe& r) {
  r.backward.score_gradient = [right = r.backward.score_gradient](GradientWalk& g) {
    const Walk& w = g.forward;
    right(g);
    Tensor<double, 3> column({w.B, w.H, w.Tk});
    for_each_weight(
        g, [&](Index b, Index h, Index i, Index j) { column(b, h, j) += g.p(b, h, i, j) * g.dp(b, h, i, j); });
    for_each_weight(g, [&](Index b, Index h, Index i, Index j) {
      const double softcap = w.given.declared.softcap;
      const double tanh = softcap > 0 ? w.capped(b, h, i, j) / softcap : 0;
      g.ds(b, h, i, j) = g.p(b, h, i, j) * (g.dp(b, h, i, j) - column(b, h, j)) * (1 - tanh * tanh);
    });
  };
}

void diagonal_only(Recipe& r) {
  r.backward.score_gradient = [](GradientWalk& g) {
    for_each_weight(g, [&](Index b, Index h, Index i, Index j) {
      const double p = g.p(b, h, i, j);
      g.ds(b, h, i, j) = p * (1 - p) * g.dp(b, h, i, j);
    });
  };
}

void softmax_skipped(Recipe& r) {
  r.backward.score_gradient = [](GradientWalk& g) { g.ds = g.dp.copy(); };
}

void softcap_missing(Recipe& r) {
  r.backward.score_gradient = [](GradientWalk& g) {
    for_each_weight(g, [&](Index b, Index h, Index i, Index j) {
      g.ds(b, h, i, j) = g.p(b, h, i, j) * (g.dp(b, h, i, j) - g.row_sum(b, h, i));
    });
  };
}

// Calls change(g) behind the stage that assigns `dq` or the heads' `dk`.
template <class Change>
GradientStage then(const GradientStage& stage, const Change& change) {
  return [stage, change](GradientWalk& g) {
    stage(g);
    change(g, g.forward.recipe.scale(g.forward));
  };
}

template <int kPower>
void queries_scaled(Recipe& r) {  // by scale^(1 + kPower)
  r.backward.query_gradient =
      then(r.backward.query_gradient, [](GradientWalk& g, double scale) { scale_by(g.dq, std::pow(scale, kPower)); });
}

template <int kPower>
void keys_scaled(Recipe& r) {
  r.backward.key_gradient = then(r.backward.key_gradient, [](GradientWalk& g, double scale) {
    scale_by(g.dk_of_head, std::pow(scale, kPower));
  });
}

template <int kPower>
void both_scaled(Recipe& r) {
  queries_scaled<kPower>(r);
  keys_scaled<kPower>(r);
}

// p from exp(s − lse) with a wrong lse.
template <class WrongLse>
void recompute_with(Recipe& r, const WrongLse& wrong) {
  r.backward.recompute = [wrong](GradientWalk& g) {
    const Walk& w = g.forward;
    g.p = Tensor<double, 4>(w.weights.extents());
    for_each_weight(g, [&](Index b, Index h, Index i, Index j) {
      g.p(b, h, i, j) = std::exp(w.scores(b, h, i, j) - wrong(w, b, h, i));
    });
  };
}

double largest_score(const Walk& w, Index b, Index h, Index i) {
  double largest = -HUGE_VAL;
  for (Index j = 0; j < w.Tk; ++j) {
    if (!w.excluded(b, h, i, j)) largest = std::max(largest, w.scores(b, h, i, j));
  }
  return largest;
}

void lse_in_base_two(Recipe& r) {
  recompute_with(r, [](const Walk& w, Index b, Index h, Index i) { return w.lse(b, h, i) / std::log(2.0); });
}

void lse_without_maximum(Recipe& r) {
  recompute_with(r,
                 [](const Walk& w, Index b, Index h, Index i) { return w.lse(b, h, i) - largest_score(w, b, h, i); });
}

void maximum_for_lse(Recipe& r) {
  recompute_with(r, largest_score);
}

// Runs the backward pass with other keys hidden than the forward pass hid.
template <class IsHidden>
void rehide(Recipe& r, const IsHidden& is_hidden) {
  r.backward.recompute = [is_hidden](GradientWalk& g) {
    const Walk& w = g.forward;
    for (Index b = 0; b < w.B; ++b) {
      for (Index h = 0; h < w.H; ++h) {
        for (Index i = 0; i < w.Tq; ++i) {
          for (Index j = 0; j < w.Tk; ++j) {
            g.excluded(b, h, i, j) = !std::isfinite(w.lse(b, h, i)) || is_hidden(w, b, h, i, j);
          }
        }
      }
    }
    g.p = Tensor<double, 4>(w.weights.extents());
    for_each_weight(g, [&](Index b, Index h, Index i, Index j) {
      g.p(b, h, i, j) = std::exp(w.scores(b, h, i, j) - w.lse(b, h, i));
    });
  };
}

void mask_ignored(Recipe& r) {
  rehide(r, [](const Walk&, Index, Index, Index, Index) { return false; });
}

void causal_ignored(Recipe& r) {
  rehide(r, [](const Walk& w, Index b, Index h, Index i, Index j) {
    const Recipe& recipe = w.recipe;
    return !(recipe.window(w, b, h, i, j) && recipe.padding(w, b, h, i, j) && recipe.keep(w, b, h, i, j) &&
             recipe.documents(w, b, h, i, j));
  });
}

void padding_ignored(Recipe& r) {
  rehide(r, [](const Walk& w, Index b, Index h, Index i, Index j) {
    const Recipe& recipe = w.recipe;
    return !(recipe.causal(w, b, h, i, j) && recipe.window(w, b, h, i, j) && recipe.keep(w, b, h, i, j) &&
             recipe.documents(w, b, h, i, j));
  });
}

void window_ignored(Recipe& r) {
  rehide(r, [](const Walk& w, Index b, Index h, Index i, Index j) {
    const Recipe& recipe = w.recipe;
    return !(recipe.causal(w, b, h, i, j) && recipe.padding(w, b, h, i, j) && recipe.keep(w, b, h, i, j) &&
             recipe.documents(w, b, h, i, j));
  });
}

void top_left(Recipe& r) {
  rehide(r, [](const Walk& w, Index b, Index h, Index i, Index j) {
    const Recipe& recipe = w.recipe;
    return (w.given.declared.causal && j > i) || !(recipe.window(w, b, h, i, j) && recipe.padding(w, b, h, i, j) &&
                                                   recipe.keep(w, b, h, i, j) && recipe.documents(w, b, h, i, j));
  });
}

}  // namespace

std::vector<Fault> gradient_faults() {
  using enum Group;
  const std::string_view jacobian = "dS = P ∘ (dP − Σ_j P∘dP), the sum taken over the row.";
  const std::string_view same_mask = "Apply in the backward pass exactly the mask of the forward pass.";
  return {
      {"grad_row_sum_missing", gradients, kRowSum, row_sum_missing, "dS = P ∘ dP, without the row sum",
       "Σ_j dS(i,j) is not 0", jacobian},
      {"grad_row_sum_of_dp", gradients, kRowSum, row_sum_of_dp, "the row sum is Σ dP, not Σ P∘dP",
       "Σ_j dS(i,j) is not 0", jacobian},
      {"grad_row_sum_mean", gradients, kRowSum, row_sum_mean, "the row sum is the mean of dP",
       "right where all weights are equal", jacobian},
      {"grad_row_sum_added", gradients, kRowSum, row_sum_added, "the row sum is added, not subtracted",
       "Σ_j dS(i,j) is not 0", jacobian},
      {"grad_row_sum_over_queries", gradients, kScoreGradient | kRowSum, row_sum_over_queries,
       "Σ P∘dP is taken over the queries", "columns of dS sum to 0, rows do not", jacobian},
      {"grad_diagonal_only", gradients, kScoreGradient, diagonal_only,
       "only the diagonal p(1 − p) of the Jacobian is used", "Σ_j dS(i,j) is not 0", jacobian},
      {"grad_softmax_skipped", gradients, kScoreGradient, softmax_skipped,
       "dS = dP: the softmax's Jacobian is left out", "gradients grow with the values", jacobian},
      {"grad_softcap_missing", gradients, kScoreGradient, softcap_missing,
       "the softcap's slope 1 − tanh² is left out", "right where scores are small",
       "Multiply dS by 1 − tanh²(s / softcap)."},
      {"grad_scale_missing", gradients, kQueryGradient | kKeyGradient, both_scaled<-1>, "dq and dk are not scaled",
       "both too large by √D", "Multiply dS·k and dSᵀ·q by the scale."},
      {"grad_scale_missing_in_dq", gradients, kQueryGradient, queries_scaled<-1>, "dq is not scaled",
       "dq too large by √D", "Multiply dS·k by the scale."},
      {"grad_scale_missing_in_dk", gradients, kKeyGradient, keys_scaled<-1>, "dk is not scaled", "dk too large by √D",
       "Multiply dSᵀ·q by the scale."},
      {"grad_scale_twice", gradients, kQueryGradient | kKeyGradient, both_scaled<1>, "dq and dk are scaled twice",
       "both too small by √D", "Scale once."},
      {"grad_scale_twice_in_dq", gradients, kQueryGradient, queries_scaled<1>, "dq is scaled twice",
       "dq too small by √D", "Scale once."},
      {"grad_scale_twice_in_dk", gradients, kKeyGradient, keys_scaled<1>,
       "dk is scaled twice: q was scaled already when it was saved", "dk too small by √D", "Scale once."},
      {"grad_lse_in_base_two", gradients, kRecompute, lse_in_base_two, "P is recomputed from a base-2 log-sum-exp",
       "rows of the recomputed P do not sum to 1", "Keep exp with log and exp2 with log2."},
      {"grad_lse_without_maximum", gradients, kRecompute, lse_without_maximum,
       "P is recomputed from a log-sum-exp without the maximum", "right where the largest score is 0",
       "Save maximum + log(sum)."},
      {"grad_maximum_for_lse", gradients, kRecompute, maximum_for_lse,
       "P is recomputed from the row's maximum, not divided by the sum", "the largest recomputed weight is 1",
       "Save maximum + log(sum)."},
      {"grad_mask_ignored", gradients, kRecompute, mask_ignored, "the backward pass hides nothing",
       "hidden keys receive a gradient", same_mask},
      {"grad_causal_ignored", gradients, kRecompute, causal_ignored, "the backward pass forgets causality",
       "the future receives a gradient", same_mask},
      {"grad_padding_ignored", gradients, kRecompute, padding_ignored, "the backward pass forgets the padding",
       "padded keys receive a gradient", same_mask},
      {"grad_window_ignored", gradients, kRecompute, window_ignored, "the backward pass forgets the window",
       "keys behind the window receive a gradient", same_mask},
      {"grad_causal_top_left", gradients, kRecompute, top_left, "the backward pass puts query 0 on key 0",
       "right where Tq = Tk", same_mask},
  };
}

}  // namespace heedful::diagnosis
