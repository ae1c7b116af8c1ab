// The matrix products that ours are measured against: OpenBLAS as it comes, OpenBLAS told which processor this is, and
// oneDNN. Looked for when the program runs (Debian's libopenblas0-pthread and libdnnl2); what is not there takes no
// part, and blas_peers_text says so.
#ifndef HEEDFUL_BENCH_BLAS_PEERS_H_
#define HEEDFUL_BENCH_BLAS_PEERS_H_

#include <functional>
#include <string>
#include <vector>

#include "heedful/core/view.h"

namespace heedful {

// c = a·b on views whose rows or columns lie next to each other; c's columns do.
template <class T>
struct BlasPeer {
  std::string name;
  std::function<void(int threads)> use_threads;
  std::function<void(View<T, 2> c, View<const T, 2> a, View<const T, 2> b)> multiply;
};

// oneDNN multiplies floats only. The peers keep to the instruction set that our kernels take; OpenBLAS as it comes
// would not, so it takes no part where HEEDFUL_TARGET names one.
template <class T>
std::vector<BlasPeer<T>> blas_peers();

// What is meant by their names here: version and processor family of each, or that it was not found.
std::string blas_peers_text();

}  // namespace heedful

#endif  // HEEDFUL_BENCH_BLAS_PEERS_H_
