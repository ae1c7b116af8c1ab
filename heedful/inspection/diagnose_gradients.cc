#include "heedful/inspection/diagnose_gradients.h"

#include <algorithm>
#include <cmath>

#include "heedful/inspection/diagnose_error_model.h"

namespace heedful::diagnosis {
namespace {

double dot(const double* a, const double* b, Index n) {
  double sum = 0;
  for (Index at = 0; at < n; ++at) sum += a[at] * b[at];
  return sum;
}

double absolute_dot(const double* a, const double* b, Index n) {
  double sum = 0;
  for (Index at = 0; at < n; ++at) sum += std::abs(a[at] * b[at]);
  return sum;
}

void add(double* to, double factor, const double* from, Index n) {
  for (Index at = 0; at < n; ++at) to[at] += factor * from[at];
}

void value_gradient(GradientWalk& g) {
  const Walk& w = g.forward;
  for_each_weight(g, [&](Index b, Index h, Index i, Index j) {
    add(&g.dv_of_head(b, h, j, 0), g.p(b, h, i, j), &w.given.dout(b, h, i, 0), w.E);
  });
}

void weight_gradient(GradientWalk& g) {
  const Walk& w = g.forward;
  for_each_weight(g, [&](Index b, Index h, Index i, Index j) {
    g.dp(b, h, i, j) = dot(&w.given.dout(b, h, i, 0), &w.v(b, w.recipe.value_head(w, h), j, 0), w.E);
  });
}

void row_sum(GradientWalk& g) {
  for_each_weight(
      g, [&](Index b, Index h, Index i, Index j) { g.row_sum(b, h, i) += g.p(b, h, i, j) * g.dp(b, h, i, j); });
}

void score_gradient(GradientWalk& g) {
  const Walk& w = g.forward;
  const double softcap = w.given.declared.softcap;
  for_each_weight(g, [&](Index b, Index h, Index i, Index j) {
    const double tanh = softcap > 0 ? w.capped(b, h, i, j) / softcap : 0;
    g.ds(b, h, i, j) = g.p(b, h, i, j) * (g.dp(b, h, i, j) - g.row_sum(b, h, i)) * (1 - tanh * tanh);
  });
}

void query_gradient(GradientWalk& g) {
  const Walk& w = g.forward;
  const double scale = w.recipe.scale(w);
  for_each_weight(g, [&](Index b, Index h, Index i, Index j) {
    add(&g.dq(b, h, i, 0), scale * g.ds(b, h, i, j), &w.k(b, w.recipe.key_head(w, h), j, 0), w.D);
  });
}

void key_gradient(GradientWalk& g) {
  const Walk& w = g.forward;
  const double scale = w.recipe.scale(w);
  for_each_weight(g, [&](Index b, Index h, Index i, Index j) {
    add(&g.dk_of_head(b, h, j, 0), scale * g.ds(b, h, i, j), &w.q(b, h, i, 0), w.D);
  });
}

void gather(GradientWalk& g) {
  const Walk& w = g.forward;
  for (Index b = 0; b < w.B; ++b) {
    for (Index h = 0; h < w.H; ++h) {
      add(&g.dk(b, w.recipe.key_head(w, h), 0, 0), 1, &g.dk_of_head(b, h, 0, 0), w.Tk * w.D);
      add(&g.dv(b, w.recipe.value_head(w, h), 0, 0), 1, &g.dv_of_head(b, h, 0, 0), w.Tk * w.E);
    }
  }
}

void unrotate(GradientWalk& g) {
  const Walk& w = g.forward;
  if (!w.given.declared.rotary) return;
  turn(w, g.dq, w.recipe.query_rotation, -1);
  turn(w, g.dk, w.recipe.key_rotation, -1);
}

// The first-order errors of each step, each head's worst element standing for the whole head.
void predict_head_errors(GradientWalk& g, Index b, Index h) {
  const Walk& w = g.forward;
  const double u = w.type.unit, a = w.type.accumulator_unit, scale = std::abs(w.recipe.scale(w));
  const Index key_head = w.recipe.key_head(w, h), value_head = w.recipe.value_head(w, h);
  Tensor<double, 2> dk_error({w.Tk, w.D}), dv_error({w.Tk, w.E});
  double dq_worst = 0;
  for (Index i = 0; i < w.Tq; ++i) {
    const double* dout = &w.given.dout(b, h, i, 0);
    double row_sum_error = u * absolute_dot(dout, &w.out(b, h, i, 0), w.E);
    std::vector<double> dp_error(static_cast<std::size_t>(w.Tk));
    for (Index j = 0; j < w.Tk; ++j) {
      if (g.excluded(b, h, i, j)) continue;
      double& error = dp_error[static_cast<std::size_t>(j)];
      error = (u + chain(w.E) * a) * absolute_dot(dout, &w.v(b, value_head, j, 0), w.E);
      row_sum_error += std::abs(g.p(b, h, i, j)) * error + w.weight_error(b, h, i, j) * std::abs(g.dp(b, h, i, j));
    }
    std::vector<double> dq_error(static_cast<std::size_t>(w.D));
    for (Index j = 0; j < w.Tk; ++j) {
      if (g.excluded(b, h, i, j)) continue;
      const double p = std::abs(g.p(b, h, i, j)), ds = std::abs(g.ds(b, h, i, j));
      const double ds_error = w.weight_error(b, h, i, j) * std::abs(g.dp(b, h, i, j) - g.row_sum(b, h, i)) +
                              p * (dp_error[static_cast<std::size_t>(j)] + row_sum_error) + u * ds;
      for (Index d = 0; d < w.D; ++d) {
        dq_error[static_cast<std::size_t>(d)] +=
            scale * (ds_error + (u + chain(w.Tk) * a) * ds) * std::abs(w.k(b, key_head, j, d));
        dk_error(j, d) += scale * (ds_error + (u + chain(w.Tq) * a) * ds) * std::abs(w.q(b, h, i, d));
      }
      for (Index e = 0; e < w.E; ++e) {
        dv_error(j, e) += (w.weight_error(b, h, i, j) + (u + chain(w.Tq) * a) * p) * std::abs(dout[e]);
      }
    }
    dq_worst = std::max(dq_worst, *std::max_element(dq_error.begin(), dq_error.end()));
  }
  g.dq_error(b, h) = dq_worst + w.type.tiny;
  g.dk_error(b, key_head) += *std::max_element(dk_error.begin(), dk_error.end()) + w.type.tiny;
  g.dv_error(b, value_head) += *std::max_element(dv_error.begin(), dv_error.end()) + w.type.tiny;
}

}  // namespace

GradientWalk::GradientWalk(const Walk& finished)
    : forward(finished),
      excluded(finished.excluded.copy()),
      dp(finished.weights.extents()),
      ds(finished.weights.extents()),
      row_sum(finished.lse.extents()),
      dk_of_head({finished.B, finished.H, finished.Tk, finished.D}),
      dv_of_head({finished.B, finished.H, finished.Tk, finished.E}),
      dq(finished.q.extents()),
      dk(finished.k.extents()),
      dv(finished.v.extents()),
      dq_error({finished.B, finished.H}),
      dk_error({finished.B, finished.G}),
      dv_error({finished.B, finished.G}) {}

GradientRecipe correct_gradient_recipe() {
  return {[](GradientWalk& g) { g.p = g.forward.weights.copy(); },
          value_gradient,
          weight_gradient,
          row_sum,
          score_gradient,
          query_gradient,
          key_gradient,
          gather,
          unrotate};
}

GradientWalk walk_back(const Walk& finished) {
  GradientWalk g(finished);
  const GradientRecipe& r = finished.recipe.backward;
  for (const GradientStage* stage : {&r.recompute, &r.value_gradient, &r.weight_gradient, &r.row_sum,
                                     &r.score_gradient, &r.query_gradient, &r.key_gradient, &r.gather, &r.unrotate}) {
    (*stage)(g);
  }
  for (Index b = 0; b < finished.B; ++b) {
    for (Index h = 0; h < finished.H; ++h) predict_head_errors(g, b, h);
  }
  return g;
}

}  // namespace heedful::diagnosis
