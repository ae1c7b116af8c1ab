#include "bench/blas_peers.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <type_traits>

#include "bench/machine.h"

namespace heedful {
namespace {

// The types of cblas.h and dnnl.h, written out so that the benchmarks build where neither is installed.
template <class T>
using CblasGemm = void (*)(int order, int transpose_a, int transpose_b, int m, int n, int k, T alpha, const T* a,
                           int a_row, const T* b, int b_row, T beta, T* c, int c_row);
constexpr int kRowMajor = 101, kNoTranspose = 111, kTranspose = 112;
using DnnlSgemm = int (*)(char transpose_a, char transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
                          float alpha, const float* a, std::int64_t a_row, const float* b, std::int64_t b_row,
                          float beta, float* c, std::int64_t c_row);
struct DnnlVersion {
  int major, minor, patch;
};

template <class Function>
Function find(void* library, const char* name) {
  return library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, name));
}

// OpenBLAS chooses its kernels once, while it is loaded, by the processor or by OPENBLAS_CORETYPE. So that both
// choices stand in one run, the second is a copy of the file: the loader takes it for another library.
struct OpenBlas {
  void* library = nullptr;
  CblasGemm<float> sgemm = nullptr;
  CblasGemm<double> dgemm = nullptr;
  void (*use_threads)(int) = nullptr;
  std::string core, config;

  void load(const char* path, const char* core_type) {
    if (core_type == nullptr) {
      unsetenv("OPENBLAS_CORETYPE");
    } else {
      setenv("OPENBLAS_CORETYPE", core_type, 1);
    }
    unsetenv("OPENBLAS_L2_SIZE");
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    sgemm = find<CblasGemm<float>>(library, "cblas_sgemm");
    dgemm = find<CblasGemm<double>>(library, "cblas_dgemm");
    use_threads = find<void (*)(int)>(library, "openblas_set_num_threads");
    if (const auto name = find<char* (*)()>(library, "openblas_get_corename")) core = name();
    if (const auto name = find<char* (*)()>(library, "openblas_get_config")) config = name();
    config = config.substr(0, config.find(' ', config.find(' ') + 1));  // "OpenBLAS 0.3.21"
  }
  bool complete() const { return sgemm != nullptr && dgemm != nullptr && use_threads != nullptr; }
};

bool on_avx512() {
  return machine_target().starts_with("AVX3");
}

OpenBlas load_copy(void* original, const char* core_type) {
  OpenBlas copy;
  Dl_info info;
  if (original == nullptr || dladdr(dlsym(original, "cblas_sgemm"), &info) == 0) return copy;
  const int file = memfd_create("openblas", 0);
  std::ifstream from(info.dli_fname, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(from), std::istreambuf_iterator<char>()};
  if (file >= 0 && write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size())) {
    copy.load(fmt::format("/proc/self/fd/{}", file).c_str(), core_type);
  }
  return copy;
}

struct OneDnn {
  DnnlSgemm sgemm = nullptr;
  void (*use_threads)(int) = nullptr;
  std::string version;

  OneDnn() {
    for (const char* name : {"libdnnl.so.3", "libdnnl.so.2"}) {
      void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (library == nullptr) continue;
      constexpr int kAvx2 = 0x7;  // dnnl_cpu_isa_avx2
      const auto limit = find<int (*)(int)>(library, "dnnl_set_max_cpu_isa");
      if (limit != nullptr && !on_avx512()) limit(kAvx2);
      sgemm = find<DnnlSgemm>(library, "dnnl_sgemm");
      use_threads = find<void (*)(int)>(dlopen("libgomp.so.1", RTLD_NOW), "omp_set_num_threads");
      if (const auto get = find<const DnnlVersion* (*)()>(library, "dnnl_version")) {
        version = fmt::format("oneDNN {}.{}.{}", get()->major, get()->minor, get()->patch);
      }
      return;
    }
  }
  bool complete() const { return sgemm != nullptr && use_threads != nullptr; }
};

struct Libraries {
  OpenBlas plain, tuned;
  OneDnn one_dnn;

  Libraries() {
    plain.load("libopenblas.so.0", nullptr);
    tuned = load_copy(plain.library, on_avx512() ? "SkylakeX" : "Haswell");
  }
};

const Libraries& libraries() {
  static const Libraries found;
  return found;
}

// Its row step where `x`'s rows lie next to each other, its column step where its columns do.
template <class T>
int step(View<const T, 2> x) {
  return static_cast<int>(x.stride(1) == 1 ? x.stride(0) : x.stride(1));
}

template <class T>
void add(std::vector<BlasPeer<T>>& peers, const char* name, const OpenBlas& blas) {
  if (!blas.complete()) return;
  peers.push_back({name, blas.use_threads, [&](View<T, 2> c, View<const T, 2> a, View<const T, 2> b) {
                     const auto transposed = [](View<const T, 2> x) {
                       return x.stride(1) == 1 ? kNoTranspose : kTranspose;
                     };
                     const auto size = [](Index extent) { return static_cast<int>(extent); };
                     CblasGemm<T> gemm;
                     if constexpr (std::is_same_v<T, float>) {
                       gemm = blas.sgemm;
                     } else {
                       gemm = blas.dgemm;
                     }
                     gemm(kRowMajor, transposed(a), transposed(b), size(c.extent(0)), size(c.extent(1)),
                          size(a.extent(1)), 1, a.data(), step(a), b.data(), step(b), 0, c.data(), step<T>(c));
                   }});
}

}  // namespace

template <class T>
std::vector<BlasPeer<T>> blas_peers() {
  std::vector<BlasPeer<T>> peers;
  if (std::getenv("HEEDFUL_TARGET") == nullptr) add(peers, "OpenBLAS", libraries().plain);  // cannot be held back
  add(peers, "OpenBLAS_tuned", libraries().tuned);
  if constexpr (std::is_same_v<T, float>) {
    const OneDnn& one_dnn = libraries().one_dnn;
    if (one_dnn.complete()) {
      peers.push_back({"oneDNN", one_dnn.use_threads,
                       [&one_dnn](View<float, 2> c, View<const float, 2> a, View<const float, 2> b) {
                         const auto transposed = [](View<const float, 2> x) { return x.stride(1) == 1 ? 'N' : 'T'; };
                         one_dnn.sgemm(transposed(a), transposed(b), c.extent(0), c.extent(1), a.extent(1), 1,
                                       a.data(), step(a), b.data(), step(b), 0, c.data(), step<float>(c));
                       }});
    }
  }
  return peers;
}
template std::vector<BlasPeer<float>> blas_peers<float>();
template std::vector<BlasPeer<double>> blas_peers<double>();

std::string blas_peers_text() {
  const Libraries& found = libraries();
  const auto text = [](const OpenBlas& blas) {
    return blas.complete() ? fmt::format("{}, kernels for {}", blas.config, blas.core) : "not found";
  };
  return fmt::format("OpenBLAS: {}; OpenBLAS_tuned: {}; oneDNN: {}", text(found.plain), text(found.tuned),
                     found.one_dnn.complete() ? found.one_dnn.version : "not found");
}

}  // namespace heedful
