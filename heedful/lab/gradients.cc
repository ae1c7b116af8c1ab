#include <algorithm>
#include <cmath>
#include <vector>

#include "heedful/decoder/loss.h"
#include "heedful/inspection/gradient_check.h"
#include "heedful/lab/experiments.h"
#include "heedful/report/claim.h"

namespace heedful {
namespace {

// The article's set-up: width 16, 4 heads, 2 blocks, F = 64, three sequences of 12 random tokens, seed 0.
struct Subject {
  Decoder<double> decoder;
  Batch<double> batch;
  Tensor<double, 1> gradients;
  std::vector<Index> coordinates;  // the first six of each tensor whose gradient exceeds 1e-6
};

Subject article_subject(NormPlacement placement) {
  constexpr Index V = 21, B = 3, T = 12;
  Random random(0);
  Subject subject;
  DecoderConfig config{.vocabulary = V, .context = 13, .width = 16, .feed_forward = 64};
  config.norm_placement = placement;
  subject.decoder = {config, initial_parameters<double>(config, random)};
  subject.batch = {Tensor<Index, 2>({B, T}), Tensor<Index, 2>({B, T}), Tensor<double, 2>({B, T})};
  for (Index& token : subject.batch.tokens) token = random.integer(0, V);
  for (Index& target : subject.batch.targets) target = random.integer(0, V);
  for (Index b = 0; b < B; ++b) {
    for (Index t = T / 2; t < T; ++t) subject.batch.loss_weights(b, t) = 1;
  }
  subject.gradients = Tensor<double, 1>(subject.decoder.parameters.extents());
  Activations<double> activations;
  decoder_loss_and_gradients<double>(Context(1), subject.gradients, activations, subject.decoder, subject.batch);
  for (const auto& entry : parameter_inventory(config)) {
    Index taken = 0;
    for (Index i = entry.offset; i < entry.offset + entry.size() && taken < 6; ++i) {
      if (std::abs(subject.gradients(i)) <= 1e-6) continue;
      subject.coordinates.push_back(i);
      ++taken;
    }
  }
  return subject;
}

struct Sweep {
  double worst = 0;         // of all coordinates, as the article measures
  double worst_smooth = 0;  // of those whose step crosses no corner
  Index kinks = 0;
  bool worst_is_kink = false;
};

class Probe {
 public:
  explicit Probe(const Subject& subject)
      : subject_(subject), decoder_{subject.decoder.config, subject.decoder.parameters.copy()} {}

  Sweep sweep(double epsilon) {
    Sweep result;
    for (const Index i : subject_.coordinates) {
      double& theta = decoder_.parameters(i);
      const double start = theta;
      theta = start + epsilon;
      const double above = loss();
      const std::vector<bool> signs = relu_signs();
      theta = start - epsilon;
      const double below = loss();
      const bool kink = signs != relu_signs();
      theta = start;
      const double numeric = (above - below) / (2 * epsilon), analytic = subject_.gradients(i);
      const double off = std::abs(numeric - analytic) / std::max(std::abs(numeric), std::abs(analytic));
      result.kinks += kink;
      if (!kink) result.worst_smooth = std::max(result.worst_smooth, off);
      if (off > result.worst) {
        result.worst = off;
        result.worst_is_kink = kink;
      }
    }
    return result;
  }

 private:
  double loss() { return decoder_loss<double>(context_, activations_, decoder_, subject_.batch); }
  std::vector<bool> relu_signs() const {
    std::vector<bool> signs;
    for (const auto& block : activations_.blocks) {
      for (const double input : block.up) signs.push_back(input > 0);
    }
    return signs;
  }

  const Subject& subject_;
  Decoder<double> decoder_;
  Activations<double> activations_;
  Context context_{1};
};

constexpr double kEpsilons[] = {1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10};

void measure_sweep(Report& report, const Lab& lab, NormPlacement placement, CurveFigure& figure) {
  const bool pre = placement == NormPlacement::pre;
  const std::string name = pre ? "pre-norm" : "post-norm", source = "article, §gradient check";
  const Subject subject = article_subject(placement);
  Probe probe(subject);
  Table table{fmt::format("{}: {} coordinates, relative deviation by ε", name, subject.coordinates.size()),
              {"ε", "worst of all", "at a kink", "kinks", "worst without kinks"},
              {}};
  Curve all{name + ", all", {}, {}}, smooth{name + ", kinks left out", {}, {}};
  std::vector<Sweep> sweeps;
  for (const double epsilon : kEpsilons) {
    lab.progress(pre ? 0.05 : 0.3, fmt::format("{}, ε = {:.0e}", name, epsilon));
    const Sweep sweep = probe.sweep(epsilon);
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
  const Sweep &at_4 = sweeps[2], &at_6 = sweeps[4];
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
  const Subject subject = article_subject(placement);
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
