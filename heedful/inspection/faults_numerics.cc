// Mistakes of precision and of rows that see nothing. They show only against what the declared type's rounding allows.
#include <algorithm>
#include <cmath>

#include "heedful/inspection/faults.h"

namespace heedful::diagnosis {
namespace {

// Rounds x to `type`. Where a declared type's own error might carry x across a place at which rounding jumps, the
// jump is added to that error.
void coarsen(double& x, double& error, const Rounding& type) {
  const Jump jump = nearest_jump(type, x);
  if (jump.distance < 4 * error) error += jump.height;
  x = round_to(type, x);
}

template <DataType kType>
void scores_in(Recipe& r) {
  r.score = [score = r.score](Walk& w) {
    score(w);
    if (w.type.bits <= rounding_of(kType).bits) return;
    for (Index at = 0; at < w.scores.size(); ++at) {
      coarsen(w.scores.data()[at], w.score_error.data()[at], rounding_of(kType));
    }
  };
}

// What overflows before the scale would have shrunk it is infinite.
template <DataType kType>
void products_in(Recipe& r) {
  r.score = [score = r.score](Walk& w) {
    score(w);
    if (w.type.bits <= rounding_of(kType).bits) return;
    const double scale = w.recipe.scale(w);
    for (Index at = 0; at < w.scores.size(); ++at) {
      double product = w.scores.data()[at] / scale, error = w.score_error.data()[at] / std::abs(scale);
      coarsen(product, error, rounding_of(kType));
      w.scores.data()[at] = product * scale;
      w.score_error.data()[at] = error * std::abs(scale);
    }
  };
}

template <DataType kType>
void weights_in(Recipe& r) {
  r.normalize = [softmax = r.normalize](Walk& w) {
    softmax(w);
    if (w.type.bits <= rounding_of(kType).bits) return;
    for (Index at = 0; at < w.weights.size(); ++at) {
      double& weight = w.weights.data()[at];
      w.weight_error.data()[at] = weight * (w.score_error.data()[at] + 8 * w.type.unit);
      coarsen(weight, w.weight_error.data()[at], rounding_of(kType));
    }
  };
}

template <DataType kType>
void output_in(Recipe& r) {
  r.mix = [mix = r.mix](Walk& w) {
    mix(w);
    if (w.type.bits <= rounding_of(kType).bits) return;
    for (Index at = 0; at < w.out.size(); ++at) {
      double& x = w.out.data()[at];
      w.out_error.data()[at] = 8 * w.type.unit * std::abs(x);
      coarsen(x, w.out_error.data()[at], rounding_of(kType));
    }
  };
}

template <DataType kType>
void inputs_in(Recipe& r) {
  r.load = [load = r.load](Walk& w) {
    load(w);
    if (w.type.bits <= rounding_of(kType).bits) return;
    for (Tensor<double, 4>* x : {&w.q, &w.k, &w.v}) *x = rounded<4>(rounding_of(kType), *x);
  };
}

// One weight in four, whichever the hash of its place picks, is dropped and the rest made up for.
void dropout(Recipe& r) {
  r.normalize = [softmax = r.normalize](Walk& w) {
    softmax(w);
    constexpr double kRate = 0.25;
    for (Index at = 0; at < w.weights.size(); ++at) {
      const std::uint32_t hash = (static_cast<std::uint32_t>(at) * 2654435761u) >> 16;
      w.weights.data()[at] *= hash % 4 == 0 ? 0 : 1 / (1 - kRate);
    }
  };
}

template <EmptyRowValue kValue>
bool is_not_declared(const AttentionCase& given) {
  return given.declared.empty_row != kValue;
}

template <EmptyRowValue kValue>
void empty_row(Recipe& r) {
  r.declared_empty_row = kValue;
}

std::vector<Variant> halves(void (*in_f16)(Recipe&), void (*in_bf16)(Recipe&)) {
  return {{"f16", in_f16}, {"bf16", in_bf16}};
}

}  // namespace

std::vector<Fault> numeric_faults() {
  using enum Group;
  const std::string_view wide = "Keep scores, weights and sums in f32 and round once, at the end.";
  const std::string_view empty = "Give rows that see nothing one policy, the same in every path.";
  return {
      {"numerics_scores_rounded", numerics, kScores,
       std::vector<Variant>{{"f16", scores_in<DataType::f16>},
                            {"bf16", scores_in<DataType::bf16>},
                            {"f16, before the scale", products_in<DataType::f16>},
                            {"bf16, before the scale", products_in<DataType::bf16>}},
       "scores are rounded to half precision", "error of the half type's size, growing with the scores", wide},
      {"numerics_weights_rounded", numerics, kNormalize,
       halves(weights_in<DataType::f16>, weights_in<DataType::bf16>), "weights are rounded to half precision",
       "row sums miss 1 by the half type's rounding", wide},
      {"numerics_inputs_rounded", numerics, kQueries | kKeys | kValues,
       halves(inputs_in<DataType::f16>, inputs_in<DataType::bf16>), "q, k and v are rounded to half precision first",
       "exact for inputs that half precision holds", wide},
      {"numerics_output_rounded", numerics, kMix, halves(output_in<DataType::f16>, output_in<DataType::bf16>),
       "the output is rounded to half precision", "every output is a half-precision number", wide},
      {"numerics_dropout", numerics, kNormalize, dropout, "dropout is left on at evaluation",
       "weights are 0 or 1/(1 − rate) times too large; two runs differ", "Switch dropout off outside training."},
      {"empty_row_nan", numerics, kEmptyRow, empty_row<EmptyRowValue::nan>, "a row that sees nothing becomes NaN",
       "NaN in whole rows", empty, is_not_declared<EmptyRowValue::nan>},
      {"empty_row_mean", numerics, kEmptyRow, empty_row<EmptyRowValue::mean>,
       "a row that sees nothing averages all values", "a row of a sequence of length 0 is not 0", empty},
      {"empty_row_zero", numerics, kEmptyRow, empty_row<EmptyRowValue::zero>,
       "a row that sees nothing becomes 0 though another policy was declared", "whole rows of 0", empty,
       is_not_declared<EmptyRowValue::zero>},
  };
}

}  // namespace heedful::diagnosis
