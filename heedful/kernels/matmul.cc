#include "heedful/kernels/matmul.h"

#include <algorithm>
#include <utility>

#include "heedful/core/tensor.h"
#include "heedful/kernels/matmul_work.h"
#include "heedful/kernels/rows.h"

namespace heedful {
namespace internal {

template <class T>
T* matmul_scratch(int piece, Index size) {
  thread_local Tensor<T, 1> pieces[2];
  Tensor<T, 1>& memory = pieces[piece];
  if (memory.size() < size) memory = Tensor<T, 1>({size});
  return memory.data();
}

template float* matmul_scratch<float>(int piece, Index size);
template double* matmul_scratch<double>(int piece, Index size);

}  // namespace internal

namespace {

using internal::MatmulWork;

// No task is smaller than this many multiply-adds, one to four microseconds of work.
constexpr Index kMultiplyAddsPerTask = Index{1} << 17;
// Where each can have this many, more tasks than threads even out what else the machine does.
constexpr Index kMultiplyAddsToEvenOut = Index{1} << 20;
constexpr Index kTasksPerThread = 2;
// Tasks begin at multiples of these, so that only the last one has ragged tiles.
constexpr Index kTaskRows = 12;
constexpr Index kTaskColumns = 64;

template <class T>
MatmulWork<T> part(const MatmulWork<T>& whole, Index row, Index rows, Index column, Index columns) {
  MatmulWork<T> result = whole;
  result.c += row * whole.c_row + column * whole.c_column;
  result.a += row * whole.a_row;
  result.b += column * whole.b_column;
  for (auto& [at, step] : result.addends) {
    if (at != nullptr) at += row * step + column;
  }
  result.rows = std::min(rows, whole.rows - row);
  result.columns = std::min(columns, whole.columns - column);
  return result;
}

Index round_up(Index value, Index unit) {
  return (value + unit - 1) / unit * unit;
}

template <class T>
void on_all_threads(const Context& context, const MatmulWork<T>& work) {
  const Index multiply_adds = work.rows * work.columns * work.depth;
  const Index wanted = std::clamp(multiply_adds / kMultiplyAddsToEvenOut,
                                  std::min<Index>(multiply_adds / kMultiplyAddsPerTask, context.threads()),
                                  kTasksPerThread * context.threads());
  // The longer side is cut first: every task packs what it reads of a and b for itself, and the side that is cut is
  // packed once. The other one is cut where that does not give enough.
  const auto piece = [](Index extent, Index pieces, Index unit) {
    return std::min(extent, round_up((extent + pieces - 1) / pieces, unit));
  };
  const auto count = [](Index extent, Index size) { return (extent + size - 1) / size; };
  Index rows = work.rows, columns = work.columns;
  if (work.rows >= work.columns) {
    rows = piece(work.rows, wanted, kTaskRows);
    columns = piece(work.columns, std::max(Index{1}, wanted / count(work.rows, rows)), kTaskColumns);
  } else {
    columns = piece(work.columns, wanted, kTaskColumns);
    rows = piece(work.rows, std::max(Index{1}, wanted / count(work.columns, columns)), kTaskRows);
  }
  const Index column_tasks = count(work.columns, columns);
  context.parallel_for(count(work.rows, rows) * column_tasks, [&](Index i) {
    internal::matmul_on_this_thread(part(work, i / column_tasks * rows, rows, i % column_tasks * columns, columns));
  });
}

// Where bias or residual do not lie as the tiles read them.
template <class T>
void add_afterwards(View<T, 2> c, const MatmulOptions<T>& options) {
  for (Index m = 0; m < c.extent(0); ++m) {
    for (Index n = 0; n < c.extent(1); ++n) {
      if (!options.bias.empty()) c(m, n) += options.bias[n];
      if (!options.residual.empty()) c(m, n) += options.residual(m, n);
    }
  }
}

}  // namespace

template <class T>
void matmul(const Context& context, View<T, 2> c, In<T, 2> a, In<T, 2> b,
            const MatmulOptions<std::type_identity_t<T>>& options) {
  if (a.extent(0) != c.extent(0) || b.extent(1) != c.extent(1) || a.extent(1) != b.extent(0)) {
    fail("matmul", "a·b: expected [M, K]·[K, N] for c {}, got {}·{}", shape_text(c.extents()),
         shape_text(a.extents()), shape_text(b.extents()));
  }
  if (!options.bias.empty()) internal::require_shape("matmul", "bias", options.bias, {c.extent(1)});
  if (!options.residual.empty()) internal::require_same_shape("matmul", "residual", options.residual, c);
  if (c.stride(1) != 1 && c.stride(0) != 1 && c.extent(0) > 1 && c.extent(1) > 1) {
    // Neither rows nor columns of c are neighbours. Rare: a dense product, then moved.
    const Tensor<T, 2> dense = [&] {
      Tensor<T, 2> product(c.extents());
      matmul(context, product.view(), a, b);
      return product;
    }();
    for (Index m = 0; m < c.extent(0); ++m) {
      for (Index n = 0; n < c.extent(1); ++n) c(m, n) = options.accumulate ? c(m, n) + dense(m, n) : dense(m, n);
    }
    add_afterwards<T>(c, options);
    return;
  }
  MatmulWork<T> work{.c = c.data(),
                     .a = a.data(),
                     .b = b.data(),
                     .rows = c.extent(0),
                     .columns = c.extent(1),
                     .depth = a.extent(1),
                     .c_row = c.stride(0),
                     .c_column = c.stride(1),
                     .a_row = a.stride(0),
                     .a_column = a.stride(1),
                     .b_row = b.stride(0),
                     .b_column = b.stride(1),
                     .accumulate = options.accumulate};
  if (work.rows == 0 || work.columns == 0) return;
  bool fits = (options.bias.empty() || options.bias.stride(0) == 1) &&
              (options.residual.empty() || options.residual.stride(1) == 1);
  if (work.c_column != 1 && (work.c_row == 1 || work.rows == 1) &&
      work.columns > 1) {  // cᵀ = bᵀ·aᵀ has neighbouring columns
    std::swap(work.a, work.b);
    std::swap(work.rows, work.columns);
    std::swap(work.c_row, work.c_column);
    std::swap(work.a_row, work.b_column);
    std::swap(work.a_column, work.b_row);
    fits = options.bias.empty() && options.residual.empty();
  }
  if (fits) {
    work.addends[0] = {options.bias.data(), 0};
    work.addends[1] = {options.residual.data(), options.residual.stride(0)};
  }
  if (context.threads() == 1 || work.rows * work.columns * work.depth < 2 * kMultiplyAddsPerTask) {
    internal::matmul_on_this_thread(work);
  } else {
    on_all_threads(context, work);
  }
  if (!fits) add_afterwards<T>(c, options);
}

template void matmul<float>(const Context&, View<float, 2>, In<float, 2>, In<float, 2>, const MatmulOptions<float>&);
template void matmul<double>(const Context&, View<double, 2>, In<double, 2>, In<double, 2>,
                             const MatmulOptions<double>&);

}  // namespace heedful
