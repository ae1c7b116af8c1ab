// The limits of this machine, measured: what a kernel's figures are held against. Measure next to what is measured,
// in the same process: clocks and neighbours change from minute to minute.
#ifndef HEEDFUL_BENCH_MACHINE_H_
#define HEEDFUL_BENCH_MACHINE_H_

#include <string>

#include "heedful/core/context.h"

namespace heedful {

// Multiply-adds on registers alone, GFLOP/s of all threads together, on the instruction set the kernels would take.
template <class T>
double peak_gflops(const Context& context);

// Sequential reading of `bytes` by all threads together, again and again, GB/s.
double read_gbytes_per_second(const Context& context, Index bytes);

// The processor's name, and the instruction set the kernels take ("AVX2", say).
std::string machine_name();
std::string machine_target();

// Leaves only instruction sets up to `name` ("AVX2", say) to choose from; throws Error where the machine has none.
void choose_target(const std::string& name);

}  // namespace heedful

#endif  // HEEDFUL_BENCH_MACHINE_H_
