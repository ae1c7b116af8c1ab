#include "heedful/inspection/diagnose_compare.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace heedful::diagnosis {
namespace {

// Calls each(name, got, expected, error) for every array that was answered; error(at) is σ of flat element `at`.
template <class Each>
void for_each_answer(const Walk& w, const AttentionAnswer& answer, const Each& each) {
  const auto errors = [](const auto& x) { return [&x](Index at) { return x.data()[at]; }; };
  if (is_given(answer.out)) each("out", answer.out, w.out, errors(w.out_error));
  if (is_given(answer.weights)) each("weights", answer.weights, w.weights, errors(w.weight_error));
  if (is_given(answer.lse)) each("lse", answer.lse, w.lse, errors(w.lse_error));
}

template <class Each>
void for_each_answer(const GradientWalk& g, const AttentionAnswer& answer, const Each& each) {
  // A head's error holds for all its rows; where the shapes were exchanged, the worst head's holds for all.
  const auto errors = [](const Tensor<double, 4>& x, const Tensor<double, 2>& of_head) {
    const bool fits = x.extent(0) * x.extent(1) == of_head.size();
    const double worst = *std::max_element(of_head.begin(), of_head.end());
    const Index size = x.extent(2) * x.extent(3);
    return [&of_head, fits, worst, size](Index at) { return fits ? of_head.data()[at / size] : worst; };
  };
  if (is_given(answer.dq)) each("dq", answer.dq, g.dq, errors(answer.dq, g.dq_error));
  if (is_given(answer.dk)) each("dk", answer.dk, g.dk, errors(answer.dk, g.dk_error));
  if (is_given(answer.dv)) each("dv", answer.dv, g.dv, errors(answer.dv, g.dv_error));
}

template <class Simulated>
double residual(const Simulated& simulated, const Rounding& type, const AttentionAnswer& answer) {
  double worst = 0;
  for_each_answer(simulated, answer, [&](std::string_view, const auto& got, const auto& expected, const auto& error) {
    if (got.extents() != expected.extents()) worst = HUGE_VAL;
    for (Index at = 0; at < got.size() && worst < HUGE_VAL; ++at) {
      worst = std::max(worst, distance(type, got.data()[at], expected.data()[at], error(at)));
    }
  });
  return worst;
}

template <class Simulated>
std::vector<Location> places(const Simulated& simulated, const Walk& w, const AttentionAnswer& answer) {
  std::vector<Location> result;
  for_each_answer(simulated, answer,
                  [&](std::string_view array, const auto& got, const auto& expected, const auto& error) {
                    Location location;
                    location.which = w.given.name;
                    location.array = array;
                    location.total = got.size();
                    std::set<Index> batches, heads, rows;
                    for (Index at = 0; at < got.size(); ++at) {
                      if (distance(w.type, got.data()[at], expected.data()[at], error(at)) <= kFits) continue;
                      std::vector<Index> indices;
                      Index rest = at;
                      for (auto extent = got.extents().rbegin(); extent != got.extents().rend(); ++extent) {
                        indices.insert(indices.begin(), rest % *extent);
                        rest /= *extent;
                      }
                      if (location.wrong++ == 0) {
                        location.first = indices;
                        location.expected = expected.data()[at];
                        location.got = got.data()[at];
                      }
                      batches.insert(indices[0]);
                      heads.insert(indices[1]);
                      rows.insert(indices[2]);
                    }
                    if (location.wrong == 0) return;
                    location.batches.assign(batches.begin(), batches.end());
                    location.heads.assign(heads.begin(), heads.end());
                    location.rows.assign(rows.begin(), rows.end());
                    result.push_back(std::move(location));
                  });
  return result;
}

template <class Simulated>
double chance(const Simulated& simulated, const Walk& w, const AttentionAnswer& answer) {
  constexpr double kMostTold = 1e6;  // by one number, NaN where none belongs included
  double sum = 0;
  for_each_answer(simulated, answer, [&](std::string_view, const auto& got, const auto& expected, const auto& error) {
    const Index width = got.extents().back();
    for (Index row = 0; row < got.size(); row += width) {
      Index independent = std::max<Index>(w.Tk - 1, 1);
      for (Index at = row; at < row + width; ++at) {
        const double far = distance(w.type, got.data()[at], expected.data()[at], error(at));
        if (far > kFits && independent-- > 0) sum -= std::log(std::min(far, kMostTold) / kFits);
      }
    }
  });
  return sum;
}

}  // namespace

double distance(const Rounding& type, double got, double expected, double error) {
  if (std::abs(expected) > type.largest) expected = std::copysign(HUGE_VAL, expected);
  if (std::isnan(expected)) return std::isnan(got) ? 0 : HUGE_VAL;
  if (got == expected) return 0;
  const bool is_measurable = std::isfinite(got) && std::isfinite(expected) && std::isfinite(error) && error > 0;
  return is_measurable ? std::abs(got - expected) / error : HUGE_VAL;
}

double forward_residual(const Walk& simulated, const AttentionAnswer& answer) {
  return residual(simulated, simulated.type, answer);
}

double backward_residual(const GradientWalk& simulated, const AttentionAnswer& answer) {
  return residual(simulated, simulated.forward.type, answer);
}

std::vector<Location> wrong_places(const Walk& simulated, const AttentionAnswer& answer) {
  return places(simulated, simulated, answer);
}

std::vector<Location> wrong_places(const GradientWalk& simulated, const AttentionAnswer& answer) {
  return places(simulated, simulated.forward, answer);
}

double log_chance(const Walk& simulated, const AttentionAnswer& answer) {
  return chance(simulated, simulated, answer);
}

double log_chance(const GradientWalk& simulated, const AttentionAnswer& answer) {
  return chance(simulated, simulated.forward, answer);
}

}  // namespace heedful::diagnosis
