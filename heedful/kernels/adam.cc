#include "heedful/kernels/adam.h"

#include <cmath>

#include "heedful/kernels/dense_rows.h"
#include "heedful/kernels/rows.h"
#include "heedful/kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heedful/kernels/adam.cc"
#include "hwy/foreach_target.h"  // first: it includes this file once a target

#include "heedful/kernels/row_math-inl.h"

#ifndef HEEDFUL_KERNELS_ADAM_WORK_
#define HEEDFUL_KERNELS_ADAM_WORK_
namespace heedful {

template <class T>
struct AdamWork {
  T *parameters, *first, *second;
  const T* gradient;
  AdamOptions options;
  double first_correction, second_correction;  // 1 − βᵗ
};

}  // namespace heedful
#endif

HWY_BEFORE_NAMESPACE();
namespace heedful {
namespace HWY_NAMESPACE {

// To double and back, rounding once; nothing to do where T is double already.
template <class T, class D>
HWY_INLINE hn::Vec<D> Widened(D d, hn::Vec<hn::Rebind<T, D>> v) {
  if constexpr (sizeof(T) == sizeof(double)) {
    return v;
  } else {
    return hn::PromoteTo(d, v);
  }
}
template <class T, class D>
HWY_INLINE hn::Vec<hn::Rebind<T, D>> Narrowed(D /*d*/, hn::Vec<D> v) {
  if constexpr (sizeof(T) == sizeof(double)) {
    return v;
  } else {
    return hn::DemoteTo(hn::Rebind<T, D>(), v);
  }
}

template <class T>
void AdamRange(const AdamWork<T>& work, Index begin, Index end) {
  const hn::ScalableTag<double> d;
  const AdamOptions& o = work.options;
  const auto beta1 = hn::Set(d, o.beta1), beta2 = hn::Set(d, o.beta2);
  const auto rest1 = hn::Set(d, 1 - o.beta1), rest2 = hn::Set(d, 1 - o.beta2);
  const auto correction1 = hn::Set(d, work.first_correction), correction2 = hn::Set(d, work.second_correction);
  const auto rate = hn::Set(d, o.learning_rate), epsilon = hn::Set(d, o.epsilon);
  const auto shrink = hn::Set(d, o.learning_rate * o.weight_decay);
  T *p = work.parameters + begin, *first = work.first + begin, *second = work.second + begin;
  const T* gradient = work.gradient + begin;
  EachPart(d, end - begin, [&](auto part) HWY_ATTR {
    const auto g = Widened<T>(d, part.load(gradient)), before = Widened<T>(d, part.load(p));
    const auto m = hn::Add(hn::Mul(beta1, Widened<T>(d, part.load(first))), hn::Mul(rest1, g));
    const auto v = hn::Add(hn::Mul(beta2, Widened<T>(d, part.load(second))), hn::Mul(rest2, hn::Mul(g, g)));
    const auto root = hn::Add(hn::Sqrt(hn::Div(v, correction2)), epsilon);
    const auto step = hn::Div(hn::Mul(rate, hn::Div(m, correction1)), root);
    part.store(Narrowed<T>(d, m), first);
    part.store(Narrowed<T>(d, v), second);
    part.store(Narrowed<T>(d, hn::Sub(hn::Sub(before, hn::Mul(shrink, before)), step)), p);
  });
}

HEEDFUL_ROW_KERNEL(AdamRange, AdamWork)

}  // namespace HWY_NAMESPACE
}  // namespace heedful
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heedful {
namespace {

HEEDFUL_ROW_KERNEL_CHOICE(adam_range, AdamRange, AdamWork)

void require_options(Index step, const AdamOptions& options) {
  require(step >= 1, "adam", "step: expected at least 1, got {}", step);
  const auto require_finite = [](const char* name, double value) {
    require(std::isfinite(value) && value >= 0, "adam", "{}: expected a finite number of at least 0, got {}", name,
            value);
  };
  require_finite("learning_rate", options.learning_rate);
  require_finite("epsilon", options.epsilon);
  require_finite("weight_decay", options.weight_decay);
  require(0 <= options.beta1 && options.beta1 < 1, "adam", "beta1: expected 0 ≤ β < 1, got {}", options.beta1);
  require(0 <= options.beta2 && options.beta2 < 1, "adam", "beta2: expected 0 ≤ β < 1, got {}", options.beta2);
}

}  // namespace

template <class T>
void adam_step(const Context& context, View<T, 1> parameters, const AdamMoments<std::type_identity_t<T>>& moments,
               In<T, 1> gradient, Index step, const AdamOptions& options) {
  require_options(step, options);
  internal::require_same_shape("adam", "first moment", moments.first, parameters);
  internal::require_same_shape("adam", "second moment", moments.second, parameters);
  internal::require_same_shape("adam", "gradient", gradient, parameters);

  const internal::DenseRows<T> p(parameters), first(moments.first), second(moments.second);
  const internal::DenseRows<const T> g(gradient);
  const AdamWork<T> work{.parameters = p.row(),
                         .first = first.row(),
                         .second = second.row(),
                         .gradient = g.row(),
                         .options = options,
                         .first_correction = 1 - std::pow(options.beta1, static_cast<double>(step)),
                         .second_correction = 1 - std::pow(options.beta2, static_cast<double>(step))};
  internal::for_rows(context, parameters.extent(0), 1, [&](Index begin, Index end) { adam_range(work, begin, end); });
}

#define HEEDFUL_INSTANTIATE(T) \
  template void adam_step<T>(const Context&, View<T, 1>, const AdamMoments<T>&, In<T, 1>, Index, const AdamOptions&);
HEEDFUL_INSTANTIATE(float)
HEEDFUL_INSTANTIATE(double)
#undef HEEDFUL_INSTANTIATE

}  // namespace heedful
#endif  // HWY_ONCE
