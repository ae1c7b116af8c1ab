#include "heedful/kernels/normalization.h"

#include <array>
#include <cmath>

#include "heedful/kernels/rows.h"
#include "heedful/kernels/sum.h"

namespace heedful {
namespace {

enum class Kind { layer, rms };

// Columns whose running sums are kept at once while the rows go by.
constexpr Index kColumnsTogether = 64;

template <class T>
Index stride_or_one(const View<T, 1>& view) {
  return view.empty() ? 1 : view.stride(0);
}
template <class T>
Index stride_or_one(const View<T, 2>& view) {
  return view.empty() ? 1 : view.stride(1);
}

template <class T>
void require_vector(const char* where, const char* name, const View<T, 1>& view, Index count) {
  if (!view.empty()) internal::require_shape(where, name, view, {count});
}

template <Kind kKind, class T>
void forward(const char* where, const Context& context, View<T, 2> y, const NormalizationRecord<T>& record,
             In<T, 2> x, const NormalizationParameters<T>& parameters, double epsilon) {
  const Index rows = x.extent(0), count = x.extent(1);
  require(count > 0, where, "x: expected at least one column, got {}", count);
  require(epsilon >= 0 && std::isfinite(epsilon), where, "epsilon: expected a finite number of at least 0, got {}",
          epsilon);
  internal::require_same_shape(where, "y", y, x);
  if (!record.normalized.empty()) internal::require_same_shape(where, "normalized", record.normalized, x);
  require_vector(where, "inverse_deviation", record.inverse_deviation, rows);
  require_vector(where, "gain", parameters.gain, count);
  require_vector(where, "bias", parameters.bias, count);

  const auto row = [&](auto contiguous, Index n) {
    const auto in = internal::row(contiguous, x, n);
    const auto out = internal::row(contiguous, y, n);
    const T divisor = static_cast<T>(count);
    const T mean = kKind == Kind::layer ? internal::sum(count, [&](Index c) { return in[c]; }) / divisor : T{0};
    const T square = internal::sum(count, [&](Index c) { return (in[c] - mean) * (in[c] - mean); }) / divisor;
    const T inverse = 1 / std::sqrt(square + static_cast<T>(epsilon));
    if (!record.inverse_deviation.empty()) record.inverse_deviation[n] = inverse;
    for (Index c = 0; c < count; ++c) out[c] = (in[c] - mean) * inverse;
    if (!record.normalized.empty()) {
      const auto normalized = internal::row(contiguous, record.normalized, n);
      for (Index c = 0; c < count; ++c) normalized[c] = out[c];
    }
    if (!parameters.gain.empty()) {
      const auto gain = internal::row(contiguous, parameters.gain);
      for (Index c = 0; c < count; ++c) out[c] *= gain[c];
    }
    if (!parameters.bias.empty()) {
      const auto bias = internal::row(contiguous, parameters.bias);
      for (Index c = 0; c < count; ++c) out[c] += bias[c];
    }
  };
  internal::for_rows(context, rows, count, [&](Index begin, Index end) {
    internal::when_contiguous(
        [&](auto contiguous) {
          for (Index n = begin; n < end; ++n) row(contiguous, n);
        },
        x.stride(1), y.stride(1), stride_or_one(record.normalized), stride_or_one(parameters.gain),
        stride_or_one(parameters.bias));
  });
}

// dgain += Σ_n dy·x̂ and dbias += Σ_n dy: threads share out the columns, so that rows add up in their order.
template <class T>
void add_parameter_gradients(const Context& context, const NormalizationGradients<T>& gradients, In<T, 2> dy,
                             In<T, 2> normalized) {
  const auto group = [&](auto contiguous, Index begin, Index count) {
    std::array<T, kColumnsTogether> gain_sums{}, bias_sums{};
    for (Index n = 0; n < dy.extent(0); ++n) {
      const auto up = internal::row(contiguous, dy.slice(1, begin, begin + count), n);
      const auto x = internal::row(contiguous, normalized.slice(1, begin, begin + count), n);
      for (Index c = 0; c < count; ++c) {
        gain_sums[static_cast<std::size_t>(c)] += up[c] * x[c];
        bias_sums[static_cast<std::size_t>(c)] += up[c];
      }
    }
    for (Index c = 0; c < count; ++c) {
      if (!gradients.dgain.empty()) gradients.dgain[begin + c] += gain_sums[static_cast<std::size_t>(c)];
      if (!gradients.dbias.empty()) gradients.dbias[begin + c] += bias_sums[static_cast<std::size_t>(c)];
    }
  };
  const Index columns = dy.extent(1), groups = (columns + kColumnsTogether - 1) / kColumnsTogether;
  internal::for_rows(context, groups, dy.extent(0) * kColumnsTogether, [&](Index first, Index last) {
    internal::when_contiguous(
        [&](auto contiguous) {
          for (Index g = first; g < last; ++g) {
            group(contiguous, g * kColumnsTogether, std::min(kColumnsTogether, columns - g * kColumnsTogether));
          }
        },
        dy.stride(1), normalized.stride(1));
  });
}

template <Kind kKind, class T>
void backward(const char* where, const Context& context, const NormalizationGradients<T>& gradients, In<T, 2> dy,
              const NormalizationRecord<const T>& record, In<T, 1> gain) {
  const Index rows = dy.extent(0), count = dy.extent(1);
  const View<T, 2>& dx = gradients.dx;
  require(count > 0, where, "dy: expected at least one column, got {}", count);
  internal::require_same_shape(where, "normalized", record.normalized, dy);
  internal::require_shape(where, "inverse_deviation", record.inverse_deviation, {rows});
  if (!dx.empty()) internal::require_same_shape(where, "dx", dx, dy);
  require_vector(where, "gain", gain, count);
  require_vector(where, "dgain", gradients.dgain, count);
  require_vector(where, "dbias", gradients.dbias, count);

  if (!gradients.dgain.empty() || !gradients.dbias.empty()) {  // first: dx may be dy
    add_parameter_gradients<T>(context, gradients, dy, record.normalized);
  }
  if (dx.empty()) return;

  const auto row = [&](auto contiguous, Index n) {
    const auto up = internal::row(contiguous, dy, n);
    const auto x = internal::row(contiguous, record.normalized, n);
    const auto out = internal::row(contiguous, dx, n);
    const T divisor = static_cast<T>(count), inverse = record.inverse_deviation[n];
    if (gain.empty()) {
      for (Index c = 0; c < count; ++c) out[c] = up[c];
    } else {
      const auto by = internal::row(contiguous, gain);
      for (Index c = 0; c < count; ++c) out[c] = up[c] * by[c];
    }
    const T mean = kKind == Kind::layer ? internal::sum(count, [&](Index c) { return out[c]; }) / divisor : T{0};
    const T along = internal::sum(count, [&](Index c) { return out[c] * x[c]; }) / divisor;
    for (Index c = 0; c < count; ++c) out[c] = inverse * (out[c] - mean - x[c] * along);
  };
  internal::for_rows(context, rows, count, [&](Index begin, Index end) {
    internal::when_contiguous(
        [&](auto contiguous) {
          for (Index n = begin; n < end; ++n) row(contiguous, n);
        },
        dy.stride(1), dx.stride(1), record.normalized.stride(1), stride_or_one(gain));
  });
}

}  // namespace

template <class T>
void layer_norm_forward(const Context& context, View<T, 2> y,
                        const NormalizationRecord<std::type_identity_t<T>>& record, In<T, 2> x,
                        const NormalizationParameters<std::type_identity_t<T>>& parameters, double epsilon) {
  forward<Kind::layer, T>("layer_norm_forward", context, y, record, x, parameters, epsilon);
}

template <class T>
void layer_norm_backward(const Context& context, const NormalizationGradients<T>& gradients, In<T, 2> dy,
                         const NormalizationRecord<const std::type_identity_t<T>>& record, In<T, 1> gain) {
  backward<Kind::layer, T>("layer_norm_backward", context, gradients, dy, record, gain);
}

template <class T>
void rms_norm_forward(const Context& context, View<T, 2> y,
                      const NormalizationRecord<std::type_identity_t<T>>& record, In<T, 2> x, In<T, 1> gain,
                      double epsilon) {
  forward<Kind::rms, T>("rms_norm_forward", context, y, record, x, {gain, {}}, epsilon);
}

template <class T>
void rms_norm_backward(const Context& context, const NormalizationGradients<T>& gradients, In<T, 2> dy,
                       const NormalizationRecord<const std::type_identity_t<T>>& record, In<T, 1> gain) {
  require(gradients.dbias.empty(), "rms_norm_backward", "dbias: expected none, got {}",
          shape_text(gradients.dbias.extents()));
  backward<Kind::rms, T>("rms_norm_backward", context, gradients, dy, record, gain);
}

#define HEEDFUL_INSTANTIATE(T)                                                                                     \
  template void layer_norm_forward<T>(const Context&, View<T, 2>, const NormalizationRecord<T>&, In<T, 2>,         \
                                      const NormalizationParameters<T>&, double);                                  \
  template void layer_norm_backward<T>(const Context&, const NormalizationGradients<T>&, In<T, 2>,                 \
                                       const NormalizationRecord<const T>&, In<T, 1>);                             \
  template void rms_norm_forward<T>(const Context&, View<T, 2>, const NormalizationRecord<T>&, In<T, 2>, In<T, 1>, \
                                    double);                                                                       \
  template void rms_norm_backward<T>(const Context&, const NormalizationGradients<T>&, In<T, 2>,                   \
                                     const NormalizationRecord<const T>&, In<T, 1>);
HEEDFUL_INSTANTIATE(float)
HEEDFUL_INSTANTIATE(double)
#undef HEEDFUL_INSTANTIATE

}  // namespace heedful
