// How far an answer stands from a simulation, in standard deviations of rounding.
#ifndef HEEDFUL_INSPECTION_DIAGNOSE_COMPARE_H_
#define HEEDFUL_INSPECTION_DIAGNOSE_COMPARE_H_

#include "heedful/inspection/diagnose.h"
#include "heedful/inspection/diagnose_gradients.h"

namespace heedful::diagnosis {

// |got − expected| / σ. NaN and ±∞ must match exactly, else the distance is ∞; what is too large for the type is ±∞.
double distance(const Rounding& type, double got, double expected, double error);

// The largest distance over out, weights and lse, as far as they were answered.
double forward_residual(const Walk& simulated, const AttentionAnswer& answer);

// The largest distance over dq, dk and dv, as far as they were answered.
double backward_residual(const GradientWalk& simulated, const AttentionAnswer& answer);

// One Location an array that holds an element further than kFits from the simulation.
std::vector<Location> wrong_places(const Walk& simulated, const AttentionAnswer& answer);
std::vector<Location> wrong_places(const GradientWalk& simulated, const AttentionAnswer& answer);

// The logarithm of the chance that a hypothesis which has nothing to do with the answer fits it all the same: each
// wrong number, d standard deviations from the simulation, lets one in d / kFits through. Of a row of n keys at most
// n − 1 numbers are taken for independent.
double log_chance(const Walk& simulated, const AttentionAnswer& answer);
double log_chance(const GradientWalk& simulated, const AttentionAnswer& answer);

}  // namespace heedful::diagnosis

#endif  // HEEDFUL_INSPECTION_DIAGNOSE_COMPARE_H_
