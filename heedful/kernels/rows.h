// What kernels that treat every row (or element, or column) by itself share: cutting rows among threads, and inner
// loops that know when elements lie next to each other.
#ifndef HEEDFUL_KERNELS_ROWS_H_
#define HEEDFUL_KERNELS_ROWS_H_

#include <algorithm>
#include <type_traits>

#include "heedful/core/context.h"
#include "heedful/core/error.h"
#include "heedful/core/view.h"

namespace heedful::internal {

// Fewer element visits than this are not worth a second thread (a wake-up costs about as much as 8 µs of work).
inline constexpr Index kElementsPerTask = Index{1} << 14;

// Calls work(begin, end) on ranges that cover [0, rows), each of at least kElementsPerTask elements where possible.
template <class Work>
void for_rows(const Context& context, Index rows, Index elements_per_row, const Work& work) {
  const Index rows_per_task = std::max(Index{1}, kElementsPerTask / std::max(Index{1}, elements_per_row));
  if (context.threads() == 1 || rows <= rows_per_task) {
    if (rows > 0) work(Index{0}, rows);
    return;
  }
  context.parallel_for((rows + rows_per_task - 1) / rows_per_task,
                       [&](Index i) { work(i * rows_per_task, std::min(rows, (i + 1) * rows_per_task)); });
}

// Calls body(std::true_type{}) when every stride is 1, so that the compiler sees neighbours, and
// body(std::false_type{}) otherwise: the body then goes by strides.
template <class Body, class... Strides>
auto when_contiguous(Body body, Strides... strides) {
  if (((strides == 1) && ...)) return body(std::true_type{});
  return body(std::false_type{});
}

// Element i of a row whose elements stand `stride` apart; `contiguous` is a constant that says the stride is 1.
template <class Contiguous, class T>
struct Row {
  T* data;
  Index stride;
  T& operator[](Index i) const {
    if constexpr (Contiguous::value) {
      return data[i];
    } else {
      return data[i * stride];
    }
  }
};

template <class Contiguous, class T>
Row<Contiguous, T> row(Contiguous, const View<T, 2>& view, Index n) {
  return {view.data() + n * view.stride(0), view.stride(1)};
}
template <class Contiguous, class T>
Row<Contiguous, T> row(Contiguous, const View<T, 1>& view) {
  return {view.data(), view.stride(0)};
}

template <class T, class U, int Rank>
void require_same_shape(const char* where, const char* name, const View<T, Rank>& got,
                        const View<U, Rank>& expected) {
  if (got.extents() != expected.extents()) {
    fail(where, "{}: expected {}, got {}", name, shape_text(expected.extents()), shape_text(got.extents()));
  }
}

template <class T, int Rank>
void require_shape(const char* where, const char* name, const View<T, Rank>& got, const Extents<Rank>& expected) {
  if (got.extents() != expected) {
    fail(where, "{}: expected {}, got {}", name, shape_text(expected), shape_text(got.extents()));
  }
}

}  // namespace heedful::internal

#endif  // HEEDFUL_KERNELS_ROWS_H_
