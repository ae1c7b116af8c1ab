// Kernels on rows work on rows whose elements are neighbours. Views that are not so are copied first and, where they
// are written, copied back: rare, allowed, and no reason for a second version of every kernel.
#ifndef HEEDFUL_KERNELS_DENSE_ROWS_H_
#define HEEDFUL_KERNELS_DENSE_ROWS_H_

#include <type_traits>
#include <utility>

#include "heedful/core/tensor.h"
#include "heedful/core/view.h"

namespace heedful::internal {

// [N, C] by pointers; no data where nothing was given.
template <class T>
struct Rows {
  T* data = nullptr;
  Index step = 0;
  explicit operator bool() const { return data != nullptr; }
  T* operator[](Index n) const { return data + n * step; }
};

// The rows of a view for as long as this lives; copies what was written back to the view at its end.
template <class T>
class DenseRows {
 public:
  explicit DenseRows(const View<T, 2>& view) : view_(view), rows_{view.data(), view.stride(0)} {
    if (view.empty() || view.stride(1) == 1 || view.extent(1) == 1) return;
    copy_ = Tensor<Element, 2>(view.extents());
    rows_ = {copy_.data(), view.extent(1)};
    move([](Element& dense, T& strided) { dense = strided; });
  }
  explicit DenseRows(const View<T, 1>& view)  // a vector is a matrix of one row
      : DenseRows(View<T, 2>(view.data(), {1, view.extent(0)}, {0, view.stride(0)})) {}
  ~DenseRows() {
    if constexpr (!std::is_const_v<T>) move([](Element& dense, T& strided) { strided = dense; });
  }
  DenseRows(const DenseRows&) = delete;
  DenseRows& operator=(const DenseRows&) = delete;

  const Rows<T>& rows() const { return rows_; }
  T* row() const { return rows_.data; }

 private:
  using Element = std::remove_const_t<T>;

  template <class Move>
  void move(const Move& one) {
    if (rows_.data == view_.data()) return;
    for (Index n = 0; n < view_.extent(0); ++n) {
      for (Index c = 0; c < view_.extent(1); ++c) one(copy_(n, c), view_(n, c));
    }
  }

  View<T, 2> view_;
  Rows<T> rows_;
  Tensor<Element, 2> copy_;
};

}  // namespace heedful::internal

// In a file compiled once a target, for a template Name(const Work<T>&, Index begin, Index end): the two functions that
// can be exported, and, once, their choice at run time by the type of the work.
#define HEEDFUL_ROW_KERNEL(Name, Work)                                  \
  void Name##Float(const Work<float>& work, Index begin, Index end) {   \
    Name<float>(work, begin, end);                                      \
  }                                                                     \
  void Name##Double(const Work<double>& work, Index begin, Index end) { \
    Name<double>(work, begin, end);                                     \
  }
#define HEEDFUL_ROW_KERNEL_CHOICE(name, Name, Work)                    \
  HWY_EXPORT(Name##Float);                                             \
  HWY_EXPORT(Name##Double);                                            \
  inline void name(const Work<float>& work, Index begin, Index end) {  \
    HWY_DYNAMIC_DISPATCH(Name##Float)(work, begin, end);               \
  }                                                                    \
  inline void name(const Work<double>& work, Index begin, Index end) { \
    HWY_DYNAMIC_DISPATCH(Name##Double)(work, begin, end);              \
  }

#endif  // HEEDFUL_KERNELS_DENSE_ROWS_H_
