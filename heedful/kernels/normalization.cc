#include "heedful/kernels/normalization.h"

#include <cmath>

#include "heedful/kernels/dense_rows.h"
#include "heedful/kernels/rows.h"
#include "heedful/kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heedful/kernels/normalization.cc"
#include "hwy/foreach_target.h"  // first: it includes this file once a target

#include "heedful/kernels/row_math-inl.h"

#ifndef HEEDFUL_KERNELS_NORMALIZATION_WORK_
#define HEEDFUL_KERNELS_NORMALIZATION_WORK_
namespace heedful {

// Columns whose running sums are kept at once while the rows go by.
constexpr Index kColumnsTogether = 64;

template <class T>
struct NormalizationForward {
  internal::Rows<T> y, normalized;
  internal::Rows<const T> x;
  View<T, 1> inverse_deviation;
  const T *gain, *bias;
  Index columns;
  T epsilon;
  bool subtract_mean;
};

template <class T>
struct NormalizationBackward {
  internal::Rows<T> dx;
  internal::Rows<const T> dy, normalized;
  View<const T, 1> inverse_deviation;
  const T* gain;
  View<T, 1> dgain, dbias;
  Index rows, columns;
  bool subtract_mean;
};

}  // namespace heedful
#endif

HWY_BEFORE_NAMESPACE();
namespace heedful {
namespace HWY_NAMESPACE {

template <class T>
void NormalizeRows(const NormalizationForward<T>& work, Index begin, Index end) {
  const hn::ScalableTag<T> d;
  const Index columns = work.columns;
  const T divisor = static_cast<T>(columns);
  for (Index n = begin; n < end; ++n) {
    const T* x = work.x[n];
    T* y = work.y[n];
    T* normalized = work.normalized ? work.normalized[n] : y;
    const T mean =
        work.subtract_mean ? SumParts(d, columns, [&](auto part) HWY_ATTR { return part.load(x); }) / divisor : T{0};
    const auto means = hn::Set(d, mean);
    const T square = SumParts(d, columns,
                              [&](auto part) HWY_ATTR {
                                const auto from_mean = hn::Sub(part.load(x), means);
                                return hn::Mul(from_mean, from_mean);
                              }) /
                     divisor;
    const T inverse = 1 / std::sqrt(square + work.epsilon);
    const auto inverses = hn::Set(d, inverse);
    if (!work.inverse_deviation.empty()) work.inverse_deviation[n] = inverse;
    EachPart(d, columns, [&](auto part) HWY_ATTR {
      auto value = hn::Mul(hn::Sub(part.load(x), means), inverses);
      part.store(value, normalized);
      if (work.gain != nullptr) value = hn::Mul(value, part.load(work.gain));
      if (work.bias != nullptr) value = hn::Add(value, part.load(work.bias));
      part.store(value, y);
    });
  }
}

template <class T>
void NormalizeRowsBackward(const NormalizationBackward<T>& work, Index begin, Index end) {
  const hn::ScalableTag<T> d;
  const Index columns = work.columns;
  const T divisor = static_cast<T>(columns);
  for (Index n = begin; n < end; ++n) {
    const T *dy = work.dy[n], *x = work.normalized[n];
    T* dx = work.dx[n];
    const auto scaled = [&](auto part) HWY_ATTR {
      const auto g = part.load(dy);
      return work.gain == nullptr ? g : hn::Mul(g, part.load(work.gain));
    };
    const auto mean = hn::Set(d, work.subtract_mean ? SumParts(d, columns, scaled) / divisor : T{0});
    const auto along = hn::Set(
        d, SumParts(d, columns, [&](auto part) HWY_ATTR { return hn::Mul(scaled(part), part.load(x)); }) / divisor);
    const auto inverse = hn::Set(d, work.inverse_deviation[n]);
    EachPart(d, columns, [&](auto part) HWY_ATTR {
      const auto centred = hn::Sub(scaled(part), mean);
      part.store(hn::Mul(inverse, hn::Sub(centred, hn::Mul(part.load(x), along))), dx);
    });
  }
}

// dgain += Σ_n dy·x̂ and dbias += Σ_n dy for groups of columns: threads share out the columns, so that rows add up in
// their order.
template <class T>
void NormalizeColumnSums(const NormalizationBackward<T>& work, Index begin, Index end) {
  const hn::ScalableTag<T> d;
  for (Index group = begin; group < end; ++group) {
    const Index first = group * kColumnsTogether, count = HWY_MIN(kColumnsTogether, work.columns - first);
    HWY_ALIGN T sums[2][kColumnsTogether];
    SumColumns<2>(
        d, work.rows, 0, count,
        [&](Index n, auto part, auto& both) HWY_ATTR {
          const auto g = part.load(work.dy[n] + first);
          both[0] = hn::Add(both[0], hn::Mul(g, part.load(work.normalized[n] + first)));
          both[1] = hn::Add(both[1], g);
        },
        [&](auto part, const auto& both) HWY_ATTR {
          part.store(both[0], sums[0]);
          part.store(both[1], sums[1]);
        });
    for (Index c = 0; c < count; ++c) {
      if (!work.dgain.empty()) work.dgain[first + c] += sums[0][c];
      if (!work.dbias.empty()) work.dbias[first + c] += sums[1][c];
    }
  }
}

HEEDFUL_ROW_KERNEL(NormalizeRows, NormalizationForward)
HEEDFUL_ROW_KERNEL(NormalizeRowsBackward, NormalizationBackward)
HEEDFUL_ROW_KERNEL(NormalizeColumnSums, NormalizationBackward)

}  // namespace HWY_NAMESPACE
}  // namespace heedful
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heedful {
namespace {

HEEDFUL_ROW_KERNEL_CHOICE(normalize_rows, NormalizeRows, NormalizationForward)
HEEDFUL_ROW_KERNEL_CHOICE(normalize_rows_backward, NormalizeRowsBackward, NormalizationBackward)
HEEDFUL_ROW_KERNEL_CHOICE(normalize_column_sums, NormalizeColumnSums, NormalizationBackward)

enum class Kind { layer, rms };

template <class T>
void require_vector(const char* where, const char* name, const View<T, 1>& view, Index count) {
  if (!view.empty()) internal::require_shape(where, name, view, {count});
}

template <class T>
void forward(Kind kind, const Context& context, View<T, 2> y, const NormalizationRecord<T>& record,
             View<const T, 2> x, const NormalizationParameters<T>& parameters, double epsilon) {
  const char* where = kind == Kind::layer ? "layer_norm_forward" : "rms_norm_forward";
  const Index rows = x.extent(0), columns = x.extent(1);
  require(columns > 0, where, "x: expected at least one column, got {}", columns);
  require(epsilon >= 0 && std::isfinite(epsilon), where, "epsilon: expected a finite number of at least 0, got {}",
          epsilon);
  internal::require_same_shape(where, "y", y, x);
  if (!record.normalized.empty()) internal::require_same_shape(where, "normalized", record.normalized, x);
  require_vector(where, "inverse_deviation", record.inverse_deviation, rows);
  require_vector(where, "gain", parameters.gain, columns);
  require_vector(where, "bias", parameters.bias, columns);

  const internal::DenseRows<T> out(y), normalized(record.normalized);
  const internal::DenseRows<const T> in(x), gain(parameters.gain), bias(parameters.bias);
  const NormalizationForward<T> work{.y = out.rows(),
                                     .normalized = normalized.rows(),
                                     .x = in.rows(),
                                     .inverse_deviation = record.inverse_deviation,
                                     .gain = gain.row(),
                                     .bias = bias.row(),
                                     .columns = columns,
                                     .epsilon = static_cast<T>(epsilon),
                                     .subtract_mean = kind == Kind::layer};
  internal::for_rows(context, rows, columns, [&](Index begin, Index end) { normalize_rows(work, begin, end); });
}

template <class T>
void backward(Kind kind, const Context& context, const NormalizationGradients<T>& gradients, View<const T, 2> dy,
              const NormalizationRecord<const T>& record, View<const T, 1> gain) {
  const char* where = kind == Kind::layer ? "layer_norm_backward" : "rms_norm_backward";
  const Index rows = dy.extent(0), columns = dy.extent(1);
  require(columns > 0, where, "dy: expected at least one column, got {}", columns);
  internal::require_same_shape(where, "normalized", record.normalized, dy);
  internal::require_shape(where, "inverse_deviation", record.inverse_deviation, {rows});
  if (!gradients.dx.empty()) internal::require_same_shape(where, "dx", gradients.dx, dy);
  require_vector(where, "gain", gain, columns);
  require_vector(where, "dgain", gradients.dgain, columns);
  require_vector(where, "dbias", gradients.dbias, columns);

  const internal::DenseRows<T> out(gradients.dx);
  const internal::DenseRows<const T> up(dy), normalized(record.normalized), gains(gain);
  const NormalizationBackward<T> work{.dx = out.rows(),
                                      .dy = up.rows(),
                                      .normalized = normalized.rows(),
                                      .inverse_deviation = record.inverse_deviation,
                                      .gain = gains.row(),
                                      .dgain = gradients.dgain,
                                      .dbias = gradients.dbias,
                                      .rows = rows,
                                      .columns = columns,
                                      .subtract_mean = kind == Kind::layer};
  if (!gradients.dgain.empty() || !gradients.dbias.empty()) {  // first: dx may be dy
    const Index groups = (columns + kColumnsTogether - 1) / kColumnsTogether;
    internal::for_rows(context, groups, rows * kColumnsTogether,
                       [&](Index begin, Index end) { normalize_column_sums(work, begin, end); });
  }
  if (!gradients.dx.empty()) {
    internal::for_rows(context, rows, columns,
                       [&](Index begin, Index end) { normalize_rows_backward(work, begin, end); });
  }
}

}  // namespace

template <class T>
void layer_norm_forward(const Context& context, View<T, 2> y,
                        const NormalizationRecord<std::type_identity_t<T>>& record, In<T, 2> x,
                        const NormalizationParameters<std::type_identity_t<T>>& parameters, double epsilon) {
  forward<T>(Kind::layer, context, y, record, x, parameters, epsilon);
}

template <class T>
void layer_norm_backward(const Context& context, const NormalizationGradients<T>& gradients, In<T, 2> dy,
                         const NormalizationRecord<const std::type_identity_t<T>>& record, In<T, 1> gain) {
  backward<T>(Kind::layer, context, gradients, dy, record, gain);
}

template <class T>
void rms_norm_forward(const Context& context, View<T, 2> y,
                      const NormalizationRecord<std::type_identity_t<T>>& record, In<T, 2> x, In<T, 1> gain,
                      double epsilon) {
  forward<T>(Kind::rms, context, y, record, x, {gain, {}}, epsilon);
}

template <class T>
void rms_norm_backward(const Context& context, const NormalizationGradients<T>& gradients, In<T, 2> dy,
                       const NormalizationRecord<const std::type_identity_t<T>>& record, In<T, 1> gain) {
  if (!gradients.dbias.empty()) {
    fail("rms_norm_backward", "dbias: expected none, got {}", shape_text(gradients.dbias.extents()));
  }
  backward<T>(Kind::rms, context, gradients, dy, record, gain);
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
#endif  // HWY_ONCE
