// Every benchmark of heedful in one program; the options are Google Benchmark's. HEEDFUL_TARGET=AVX2 in the
// environment holds the kernels to that instruction set.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>

#include "bench/blas_peers.h"
#include "bench/machine.h"
#include "heedful/core/error.h"

int main(int count, char** arguments) {
  benchmark::Initialize(&count, arguments);
  if (benchmark::ReportUnrecognizedArguments(count, arguments)) return 2;
  try {
    if (const char* target = std::getenv("HEEDFUL_TARGET")) heedful::choose_target(target);
    benchmark::AddCustomContext("machine", heedful::machine_name());
    benchmark::AddCustomContext("target", heedful::machine_target());
    benchmark::AddCustomContext("peers", heedful::blas_peers_text());
    benchmark::RunSpecifiedBenchmarks();
  } catch (const heedful::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  return 0;
}
