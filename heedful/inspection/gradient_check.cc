#include "heedful/inspection/gradient_check.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>
#include <vector>

#include "heedful/core/dual.h"
#include "heedful/core/error.h"
#include "heedful/inspection/scalar_decoder.h"

namespace heedful {
namespace {

constexpr double kUnit = std::numeric_limits<double>::epsilon() / 2;

enum class Kind { checked, skipped, kink };

struct Comparison {
  Kind kind = Kind::checked;
  double analytic = 0, numeric = 0;

  double deviation() const {
    const double largest = std::max(std::abs(analytic), std::abs(numeric));
    return largest == 0 ? 0 : std::abs(analytic - numeric) / largest;
  }
};

// How far the rounding of the loss moves a difference quotient.
double rounding_noise(double loss, double epsilon) {
  return 4 * kUnit * std::max(loss, 1.0) / epsilon;
}

// A copy of the model whose coordinates can be moved, and the ReLU signs it shows.
class Probe {
 public:
  Probe(const Context& context, const Decoder<double>& decoder, const Batch<double>& batch)
      : context_(context), decoder_{decoder.config, decoder.parameters.copy()}, batch_(batch) {}

  Comparison compare(Index coordinate, double analytic, const GradientCheckOptions& options) {
    double& theta = decoder_.parameters(coordinate);
    const double start = theta;
    theta = start + options.epsilon;
    const double above = theta, loss_above = loss();
    const std::vector<bool> signs = relu_signs();
    theta = start - options.epsilon;
    const double below = theta, loss_below = loss();
    const bool kink = signs != relu_signs();
    theta = start;

    Comparison result;
    result.analytic = analytic;
    result.numeric = (loss_above - loss_below) / (above - below);  // the step as it was rounded
    const double measurable = rounding_noise(loss_above, options.epsilon) / options.tolerance;
    if (kink) {
      result.kind = Kind::kink;
    } else if (std::max(std::abs(analytic), std::abs(result.numeric)) <= measurable) {
      result.kind = Kind::skipped;
    }
    return result;
  }

 private:
  double loss() { return decoder_loss<double>(context_, activations_, decoder_, batch_); }
  std::vector<bool> relu_signs() const {
    std::vector<bool> signs;
    if (decoder_.config.activation != FeedForward::relu) return signs;
    for (const auto& block : activations_.blocks) {
      for (double input : block.up) signs.push_back(input > 0);
    }
    return signs;
  }

  const Context& context_;
  Decoder<double> decoder_;
  const Batch<double>& batch_;
  Activations<double> activations_;
};

std::vector<Index> chosen_coordinates(Index count, const GradientCheckOptions& options) {
  std::vector<Index> chosen(static_cast<std::size_t>(count));
  std::iota(chosen.begin(), chosen.end(), Index{0});
  if (options.coordinates > 0 && options.coordinates < count) {
    chosen = Random(options.seed).permutation(count);
    chosen.resize(static_cast<std::size_t>(options.coordinates));
    std::ranges::sort(chosen);
  }
  return chosen;
}

std::string coordinate_name(const std::vector<ParameterEntry>& inventory, Index coordinate) {
  const auto entry = std::ranges::upper_bound(inventory, coordinate, {}, &ParameterEntry::offset) - 1;
  const Index inside = coordinate - entry->offset;
  if (entry->shape.size() == 1) return fmt::format("{}[{}]", entry->name, inside);
  return fmt::format("{}[{}, {}]", entry->name, inside / entry->shape[1], inside % entry->shape[1]);
}

struct Subject {
  View<const double, 1> gradients;
  const Decoder<double>& decoder;
  const Batch<double>& batch;
};

std::vector<Comparison> compare_all(const Context& context, const std::vector<Index>& chosen, const Subject& subject,
                                    const GradientCheckOptions& options, const CheckProgress& progress) {
  const auto total = static_cast<Index>(chosen.size());
  std::vector<Comparison> comparisons(chosen.size());
  const Context single(1);
  const Index pieces = std::min(total, Index{4} * context.threads());
  std::atomic<Index> done = 0;
  std::mutex reporting;
  context.parallel_for(pieces, [&](Index piece) {
    Probe probe(single, subject.decoder, subject.batch);
    for (Index i = total * piece / pieces; i < total * (piece + 1) / pieces; ++i) {
      const Index coordinate = chosen[static_cast<std::size_t>(i)];
      comparisons[static_cast<std::size_t>(i)] = probe.compare(coordinate, subject.gradients[coordinate], options);
      if (++done % 64 != 0 || !progress) continue;
      const std::scoped_lock lock(reporting);
      progress(done, total);
    }
  });
  return comparisons;
}

void judge_differences(GradientCheck& result, const std::vector<Comparison>& comparisons,
                       const std::vector<std::string>& names, double noise) {
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    const Comparison& c = comparisons[i];
    const double deviation = c.deviation();
    switch (c.kind) {
      case Kind::kink:
        ++result.kinks;
        result.max_kink_deviation = std::max(result.max_kink_deviation, deviation);
        break;
      case Kind::skipped:
        ++result.skipped;
        if (!(std::abs(c.analytic - c.numeric) <= 4 * noise)) ++result.small_failures;
        break;
      case Kind::checked:
        ++result.checked;
        if (!(deviation <= result.max_relative_deviation)) {  // a NaN is the worst of all
          result.max_relative_deviation = deviation;
          result.worst = names[i];
        }
        break;
    }
  }
}

void judge_forward_mode(GradientCheck& result, const Subject& subject, std::uint64_t seed) {
  const auto& [gradients, decoder, batch] = subject;
  Random random(seed);
  std::vector<Dual> parameters(decoder.parameters.begin(), decoder.parameters.end());
  double gradient_norm = 0;
  for (Index i = 0; i < gradients.size(); ++i) gradient_norm = std::hypot(gradient_norm, gradients[i]);
  for (const auto& entry : parameter_inventory(decoder.config)) {
    double along = 0, direction_norm = 0;
    for (Index i = entry.offset; i < entry.offset + entry.size(); ++i) {
      const double v = random.normal();
      parameters[static_cast<std::size_t>(i)].slope = v;
      along += gradients[i] * v;
      direction_norm = std::hypot(direction_norm, v);
    }
    const ScalarBatch scalars{batch.tokens, batch.targets, batch.loss_weights};
    const Dual loss = scalar_loss<Dual>(decoder.config, parameters.data(), scalars);
    for (Index i = entry.offset; i < entry.offset + entry.size(); ++i) {
      parameters[static_cast<std::size_t>(i)].slope = 0;
    }
    const double deviation = std::abs(along - loss.slope) / std::max(gradient_norm * direction_norm, 1e-300);
    if (!(deviation <= result.forward_mode_deviation)) {
      result.forward_mode_deviation = deviation;
      result.forward_mode_worst = entry.name;
    }
  }
}

}  // namespace

GradientCheck check_given_gradients(const Context& context, View<const double, 1> gradients,
                                    const Decoder<double>& decoder, const Batch<double>& batch,
                                    const GradientCheckOptions& options, const CheckProgress& progress) {
  constexpr const char* kWhere = "gradient check";
  require(std::isfinite(options.epsilon) && options.epsilon > 0, kWhere,
          "epsilon: expected a positive number, got {}", options.epsilon);
  require(std::isfinite(options.tolerance) && options.tolerance > 0, kWhere,
          "tolerance: expected a positive number, got {}", options.tolerance);
  require(options.coordinates >= 0, kWhere, "coordinates: expected 0 (all) or more, got {}", options.coordinates);
  require(gradients.size() == decoder.parameters.size(), kWhere, "gradients: expected {}, got {}",
          decoder.parameters.size(), gradients.size());

  const Subject subject{gradients, decoder, batch};
  const std::vector<Index> chosen = chosen_coordinates(gradients.size(), options);
  const auto comparisons = compare_all(context, chosen, subject, options, progress);
  const auto inventory = parameter_inventory(decoder.config);
  std::vector<std::string> names;
  for (Index coordinate : chosen) names.push_back(coordinate_name(inventory, coordinate));
  Activations<double> activations;
  const double loss = decoder_loss<double>(Context(1), activations, decoder, batch);

  GradientCheck result;
  judge_differences(result, comparisons, names, rounding_noise(loss, options.epsilon));
  judge_forward_mode(result, subject, options.seed);
  result.passed = result.checked > 0 && result.max_relative_deviation <= options.tolerance &&
                  result.small_failures == 0 && result.forward_mode_deviation <= kForwardModeTolerance;
  return result;
}

GradientCheck check_gradients(const Context& context, const Decoder<double>& decoder, const Batch<double>& batch,
                              const GradientCheckOptions& options, const CheckProgress& progress) {
  Tensor<double, 1> gradients(decoder.parameters.extents());
  Activations<double> activations;
  decoder_loss_and_gradients<double>(context, gradients, activations, decoder, batch);
  return check_given_gradients(context, gradients, decoder, batch, options, progress);
}

}  // namespace heedful
