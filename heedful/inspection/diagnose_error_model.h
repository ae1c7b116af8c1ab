// How far rounding alone may carry an implementation away from the exact result: one standard deviation, element by
// element, from the declared type (u its unit roundoff, a that of its accumulator, t its tiny, c(n) = max(1, √n/3)).
//
//     score     σs = scale·( c(D)·a·Σ|q·k| + 2u·√Σ(q·k)² + rotation ) + u·|s|
//     weight    ρ  = σs + 2a·(|s| + |max s|) + 3u, relative;      σp = p·(ρ + Σp·ρ) + u·p + t
//     output    σo = min(Σ p·ρ·|v − o|, max|v − o|) + (u + c(Tk)·a)·Σ p·|v| + u·|o| + t·Σ|v|
//
// docs/diagnosis.md, "Rounding", derives each term.
#ifndef HEEDFUL_INSPECTION_DIAGNOSE_ERROR_MODEL_H_
#define HEEDFUL_INSPECTION_DIAGNOSE_ERROR_MODEL_H_

#include "heedful/inspection/diagnose_simulation.h"

namespace heedful::diagnosis {

// The error of q·k for query (b, i) and key j, before the scale.
double dot_error(const Walk& w, const double* query, const double* key, Index b, Index i, Index j);

// Adds to lse_error, weight_error and out_error what rounding may leave, from score_error and the finished walk.
void predict_errors(Walk& w);

// The factor by which rounding grows in a chain of n additions: a random walk of n steps, each a uniform error on a
// partial sum that grows evenly, has a deviation of √n/3 units of the whole sum.
double chain(Index n);

}  // namespace heedful::diagnosis

#endif  // HEEDFUL_INSPECTION_DIAGNOSE_ERROR_MODEL_H_
