#include "heedful/kernels/vector_math.h"

#include <algorithm>

#include "heedful/core/check.h"
#include "heedful/kernels/simd_targets.h"

#define HWY_TARGET_INCLUDE "heedful/kernels/vector_math.cc"
#include "hwy/foreach_target.h"  // first: it includes this file once a target

#include "heedful/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heedful {
namespace HWY_NAMESPACE {
namespace {

// The last vector is filled up with zeros, so that every element goes through the same instructions.
template <class T, class Function>
HWY_INLINE void Map(T* y, const T* x, size_t count, Function function) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(function(d, hn::LoadU(d, x + i)), d, y + i);
  if (i == count) return;
  HWY_ALIGN T rest[hn::MaxLanes(d)] = {};
  std::copy_n(x + i, count - i, rest);
  hn::Store(function(d, hn::Load(d, rest)), d, rest);
  std::copy_n(rest, count - i, y + i);
}

#define HEEDFUL_MAP(Name, Function)                                           \
  void Name##Float(float* y, const float* x, size_t count) {                  \
    Map(y, x, count, [](auto d, auto v) HWY_ATTR { return Function(d, v); }); \
  }                                                                           \
  void Name##Double(double* y, const double* x, size_t count) {               \
    Map(y, x, count, [](auto d, auto v) HWY_ATTR { return Function(d, v); }); \
  }
HEEDFUL_MAP(MapExp, Exp)
HEEDFUL_MAP(MapExpFlushed, ExpFlushed)
HEEDFUL_MAP(MapTanh, Tanh)
HEEDFUL_MAP(MapErf, Erf)
#undef HEEDFUL_MAP

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace heedful
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heedful {

#define HEEDFUL_DISPATCH(name, Name)                                  \
  HWY_EXPORT(Name##Float);                                            \
  HWY_EXPORT(Name##Double);                                           \
  template <>                                                         \
  void name<float>(std::span<float> y, std::span<const float> x) {    \
    HEEDFUL_CHECK(y.size() == x.size());                              \
    HWY_DYNAMIC_DISPATCH(Name##Float)(y.data(), x.data(), x.size());  \
  }                                                                   \
  template <>                                                         \
  void name<double>(std::span<double> y, std::span<const double> x) { \
    HEEDFUL_CHECK(y.size() == x.size());                              \
    HWY_DYNAMIC_DISPATCH(Name##Double)(y.data(), x.data(), x.size()); \
  }
HEEDFUL_DISPATCH(vector_exp, MapExp)
HEEDFUL_DISPATCH(vector_exp_flushed, MapExpFlushed)
HEEDFUL_DISPATCH(vector_tanh, MapTanh)
HEEDFUL_DISPATCH(vector_erf, MapErf)
#undef HEEDFUL_DISPATCH

}  // namespace heedful
#endif  // HWY_ONCE
