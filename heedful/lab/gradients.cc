#include <vector>

#include "heedful/inspection/gradient_check.h"
#include "heedful/lab/experiments.h"
#include "heedful/lab/gradient_sweep.h"
#include "heedful/report/claim.h"

namespace heedful {
namespace {

constexpr double kEpsilons[] = {1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10};

void measure_sweep(Report& report, const Lab& lab, NormPlacement placement, CurveFigure& figure) {
  const bool pre = placement == NormPlacement::pre;
  const std::string name = pre ? "pre-norm" : "post-norm", source = "article, §gradient check";
  const GradientSubject subject = article_subject(placement);
  Table table{fmt::format("{}: {} coordinates, relative deviation by ε", name, subject.coordinates.size()),
              {"ε", "worst of all", "at a kink", "kinks", "worst without kinks"},
              {}};
  Curve all{name + ", all", {}, {}}, smooth{name + ", kinks left out", {}, {}};
  std::vector<GradientSweep> sweeps;
  for (const double epsilon : kEpsilons) {
    lab.progress(pre ? 0.05 : 0.3, fmt::format("{}, ε = {:.0e}", name, epsilon));
    const GradientSweep sweep = sweep_gradient(subject, epsilon);
    sweeps.push_back(sweep);
    table.rows.push_back({fmt::format("{:.0e}", epsilon), fmt::format("{:.2e}", sweep.worst),
                          sweep.worst_is_kink ? "yes" : "no", fmt::format("{}", sweep.kinks),
                          fmt::format("{:.2e}", sweep.worst_smooth)});
    for (auto* curve : {&all, &smooth}) curve->x.insert(curve->x.begin(), epsilon);
    all.y.insert(all.y.begin(), sweep.worst);
    smooth.y.insert(smooth.y.begin(), sweep.worst_smooth);
  }
  report.tables.push_back(std::move(table));
  figure.curves.push_back(std::move(all));
  figure.curves.push_back(std::move(smooth));
  const GradientSweep &at_4 = sweeps[2], &at_6 = sweeps[4];
  report.claims.push_back(claim_printed({name + ", ε = 1e-4: worst relative deviation", source},
                                        pre ? "9.94e-02" : "6.60e-03", at_4.worst));
  report.claims.push_back(
      claim_at_most({fmt::format("{}, ε = 1e-6: the worst deviation ({} there) is rounding, not a mistake", name,
                                 pre ? "2.56e-06" : "4.90e-05"),
                     source},
                    1e-3, at_6.worst));
  report.claims.push_back(
      claim_that({name + ", ε = 1e-4: the worst coordinate's step crosses a corner of the ReLU (the "
                         "explanation that the article gives and does not verify)",
                  source},
                 at_4.worst_is_kink, "a ReLU input changes sign within the step",
                 fmt::format("{}; {} such coordinates; without them the worst is {:.2e}, {:.0f} times smaller",
                             at_4.worst_is_kink ? "it does" : "none does", at_4.kinks, at_4.worst_smooth,
                             at_4.worst / at_4.worst_smooth)));
}

// The whole gradient, every tensor, by the library's own check.
void measure_everywhere(Report& report, const Lab& lab, NormPlacement placement) {
  const bool pre = placement == NormPlacement::pre;
  const GradientSubject subject = article_subject(placement);
  GradientCheckOptions options;
  options.coordinates = lab.full() ? 0 : 400;
  const auto check =
      check_gradients(lab.context(), subject.decoder, subject.batch, options, [&](Index done, Index total) {
        lab.progress((pre ? 0.5 : 0.75) + 0.25 * static_cast<double>(done) / static_cast<double>(total),
                     "every tensor");
      });
  report.claims.push_back(claim_that(
      {fmt::format("{}: the hand-written gradient, {} coordinates of {}, ε = 1e-6, tolerance 1e-4",
                   pre ? "pre-norm" : "post-norm", lab.full() ? "all" : "400", subject.decoder.parameters.size()),
       "article, §gradient check"},
      check.passed, "passes",
      fmt::format("{} checked, worst {:.1e}; {} too small to measure; {} kinks; forward mode {:.1e}", check.checked,
                  check.max_relative_deviation, check.skipped, check.kinks, check.forward_mode_deviation)));
}

}  // namespace

void run_gradients(Report& report, const Lab& lab) {
  CurveFigure figure{"worst relative deviation of the finite difference", "ε", "relative deviation", true, true, {}};
  for (const NormPlacement placement : {NormPlacement::pre, NormPlacement::post}) {
    measure_sweep(report, lab, placement, figure);
    measure_everywhere(report, lab, placement);
  }
  report.curves.push_back(std::move(figure));
}

}  // namespace heedful
