#include "heedful/inspection/diagnose_error_model.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace heedful::diagnosis {

namespace {

// How far the errors of the weights move an output, and how far they can: a mean of values stays among the values.
struct Lever {
  double moved = 0, reach = 0;
};

}  // namespace

double chain(Index n) {
  return std::max(1.0, std::sqrt(static_cast<double>(n)) / 3);
}

double dot_error(const Walk& w, const double* query, const double* key, Index b, Index i, Index j) {
  double sum = 0, absolute = 0, square = 0;
  for (Index d = 0; d < w.D; ++d) {
    const double product = query[d] * key[d];
    sum += product;
    absolute += std::abs(product);
    square += product * product;
  }
  double error =
      chain(w.D) * w.type.accumulator_unit * absolute + w.type.unit * (std::abs(sum) + 2 * std::sqrt(square));
  if (w.given.declared.rotary) {
    // The angle is position · frequency with frequency ≤ 1, rounded twice; the pair turns by that much too far.
    const double turns = static_cast<double>(std::abs(w.recipe.query_rotation(w, b, i))) +
                         static_cast<double>(std::abs(w.recipe.key_rotation(w, b, j)));
    error += 2 * w.type.accumulator_unit * turns * absolute;
  }
  return error;
}

void predict_errors(Walk& w) {
  const double u = w.type.unit, a = w.type.accumulator_unit;
  const bool reshaped = w.given.declared.softcap > 0 || is_given(w.given.bias);
  std::vector<double> relative(static_cast<std::size_t>(w.Tk));
  for (Index b = 0; b < w.B; ++b) {
    for (Index h = 0; h < w.H; ++h) {
      const Index g = w.recipe.value_head(w, h);
      for (Index i = 0; i < w.Tq; ++i) {
        // A score that a coarse type carries to −∞ weighs exactly nothing, as a hidden one does.
        const auto is_weighed = [&](Index j) {
          return !w.excluded(b, h, i, j) && std::isfinite(w.scores(b, h, i, j));
        };
        double largest = 0, row_sum = 0, row_error = 0, worst = 0;
        for (Index j = 0; j < w.Tk; ++j) {
          if (is_weighed(j)) largest = std::max(largest, std::abs(w.scores(b, h, i, j)));
        }
        for (Index j = 0; j < w.Tk; ++j) {
          double& rho = relative[static_cast<std::size_t>(j)];
          if (!is_weighed(j)) {
            rho = 0;
            continue;
          }
          const double score = std::abs(w.scores(b, h, i, j));
          rho = w.score_error(b, h, i, j) + (reshaped ? u * score : 0) + 2 * a * (score + largest) + 3 * u;
          worst = std::max(worst, rho);
          row_sum += w.weights(b, h, i, j);
          row_error += std::abs(w.weights(b, h, i, j)) * rho;
        }
        // A row that was normalised feels only what changes its weights against one another.
        const bool is_normalized = std::abs(row_sum - 1) < 1e-9;
        std::vector<Lever> levers(static_cast<std::size_t>(w.E));
        w.lse_error(b, h, i) = worst + u * std::abs(w.lse(b, h, i)) + 3 * a;
        for (Index j = 0; j < w.Tk; ++j) {
          if (!is_weighed(j)) continue;
          const double weight = std::abs(w.weights(b, h, i, j)), rho = relative[static_cast<std::size_t>(j)];
          const double left = weight * (u + chain(w.Tk) * a) + w.weight_error(b, h, i, j) + w.type.tiny;
          w.weight_error(b, h, i, j) += weight * (rho + row_error + u) + w.type.tiny;
          for (Index e = 0; e < w.E; ++e) {
            const double value = w.v(b, g, j, e), out = w.out(b, h, i, e);
            const double lever = is_normalized ? std::abs(value - out) : std::abs(value) + std::abs(out);
            Lever& total = levers[static_cast<std::size_t>(e)];
            total.moved += weight * rho * lever;
            total.reach = is_normalized ? std::max(total.reach, lever) : HUGE_VAL;
            w.out_error(b, h, i, e) += left * std::abs(value);
          }
        }
        for (Index e = 0; e < w.E; ++e) {
          const Lever& total = levers[static_cast<std::size_t>(e)];
          w.out_error(b, h, i, e) +=
              std::min(total.moved, total.reach) + u * std::abs(w.out(b, h, i, e)) + w.type.tiny;
        }
      }
    }
  }
}

}  // namespace heedful::diagnosis
