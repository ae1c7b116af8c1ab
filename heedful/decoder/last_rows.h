// The last n of the T positions of every sequence: rows [B·n, C] of rows [B·T, C], in the same order. All of them where
// n = T.
#ifndef HEEDFUL_DECODER_LAST_ROWS_H_
#define HEEDFUL_DECODER_LAST_ROWS_H_

#include <algorithm>

#include "heedful/core/view.h"

namespace heedful {

// The row of all rows that row `r` of the last ones is.
inline Index row_of_last(Index r, Index last_rows, Index all_rows, Index batch) {
  const Index n = last_rows / batch, length = all_rows / batch;
  return r / n * length + length - n + r % n;
}

// last [B·n, C] ← all [B·T, C]
template <class T>
void take_last(View<T, 2> last, View<const T, 2> all, Index batch) {
  for (Index r = 0; r < last.extent(0); ++r) {
    std::copy_n(&all(row_of_last(r, last.extent(0), all.extent(0), batch), 0), all.extent(1), &last(r, 0));
  }
}

// Its backward: all [B·T, C] ← the same rows of last [B·n, C], and zeros. Both begin at the same memory.
template <class T>
void spread_last(View<T, 2> all, View<T, 2> last, Index batch) {
  const Index columns = all.extent(1), n = last.extent(0) / batch, length = all.extent(0) / batch;
  if (n == length) return;
  for (Index r = last.extent(0) - 1; r >= 0; --r) {  // downwards: a row moves up or stays
    const T* from = &last(r, 0);
    std::copy_n(from, columns, &all(row_of_last(r, last.extent(0), all.extent(0), batch), 0));
  }
  for (Index b = 0; b < batch; ++b) std::fill_n(&all(b * length, 0), (length - n) * columns, T{0});
}

}  // namespace heedful

#endif  // HEEDFUL_DECODER_LAST_ROWS_H_
