// The hypotheses that `diagnose` weighs, and how well each explains what was observed.
#ifndef HEEDFUL_INSPECTION_DIAGNOSE_HYPOTHESES_H_
#define HEEDFUL_INSPECTION_DIAGNOSE_HYPOTHESES_H_

#include <deque>

#include "heedful/inspection/diagnose_compare.h"
#include "heedful/inspection/faults.h"

namespace heedful::diagnosis {

// No fault, one, or two, each in one of its forms.
struct Hypothesis {
  struct Part {
    const Fault* fault;
    std::size_t form;
  };
  std::vector<Part> parts;
  EmptyRowValue other_empty_row = EmptyRowValue::zero;

  Recipe recipe(const DeclaredAttention& declared) const;
  bool applies(const AttentionCase& given) const;
  Finding finding(double residual) const;
};

// The observations with the correct walk of each, computed once.
class Evidence {
 public:
  explicit Evidence(std::span<const Observation> observations);

  std::span<const Observation> observations() const { return observations_; }
  const Walk& correct(std::size_t at) const { return correct_[at]; }
  bool has_gradients() const { return has_gradients_; }
  bool has_lse() const { return has_lse_; }
  double work() const { return work_; }  // multiply-adds of simulating all observations once

  // The residual of a forward hypothesis over all observations. May stop at once where it is beyond `enough`: then
  // the number returned is a lower bound. Tries what an empty row may hold by mistake and keeps the best in it.
  double forward(Hypothesis& hypothesis, double enough) const;

  // The residual of the gradients under a hypothesis whose forward part is taken as found.
  double backward(const Hypothesis& hypothesis, double enough) const;

  // log_chance() over all observations, of the forward or the backward side.
  double log_chance(bool of_gradients) const;

  // The residual of "correct" if the implementation computed in a coarser type than declared.
  double forward_in(DataType coarser) const;

  // Whether the hypothesis computes anything else than the correct recipe, as far as these inputs show.
  bool is_visible(const Hypothesis& hypothesis) const;

 private:
  struct Outcome {
    double residual;
    bool empty_by_mistake;
  };
  Outcome forward_as_is(const Hypothesis& hypothesis, double enough) const;

  std::span<const Observation> observations_;
  std::vector<std::size_t> order_;  // cheapest first
  std::deque<Recipe> recipes_;      // the walks refer to them
  std::deque<Walk> correct_;
  bool has_gradients_ = false, has_lse_ = false;
  double work_ = 0;
};

// What an implementation with the hypothesis in it answers, rounded to the declared type.
AttentionAnswer simulate(const AttentionCase& given, const Hypothesis& hypothesis);

// Every form of every fault of one side that may have been at work here.
std::vector<Hypothesis> single_hypotheses(const Evidence& evidence, bool backward);

// All pairs of visible faults that do not touch the same step.
std::vector<Hypothesis> pair_hypotheses(const Evidence& evidence, std::span<const Hypothesis> singles);

}  // namespace heedful::diagnosis

#endif  // HEEDFUL_INSPECTION_DIAGNOSE_HYPOTHESES_H_
