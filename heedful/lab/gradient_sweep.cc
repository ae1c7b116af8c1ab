#include "heedful/lab/gradient_sweep.h"

#include <algorithm>
#include <cmath>

namespace heedful {
namespace {

class Probe {
 public:
  explicit Probe(const GradientSubject& subject)
      : subject_(subject), decoder_{subject.decoder.config, subject.decoder.parameters.copy()} {}

  GradientSweep sweep(double epsilon) {
    GradientSweep result;
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

  const GradientSubject& subject_;
  Decoder<double> decoder_;
  Activations<double> activations_;
  Context context_{1};
};

}  // namespace

GradientSubject article_subject(NormPlacement placement) {
  constexpr Index V = 21, B = 3, T = 12;
  Random random(0);
  GradientSubject subject;
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

GradientSweep sweep_gradient(const GradientSubject& subject, double epsilon) {
  return Probe(subject).sweep(epsilon);
}

}  // namespace heedful
