// Which instruction sets the kernels are compiled for. Include this before anything of Highway.
//
// AVX-512 and AVX2 on x86, NEON on Arm, and the baseline of either as the fallback. Left out: SSSE3 and SSE4, which
// have no fused multiply-add and would differ from the fallback in nothing that matters here; what is above AVX-512F
// (VNNI, BF16, …), which no kernel uses; and vectors of unknown length (SVE, RISC-V V), which cannot be kept in
// arrays.
#ifndef HEEDFUL_KERNELS_SIMD_TARGETS_H_
#define HEEDFUL_KERNELS_SIMD_TARGETS_H_

#if defined(__x86_64__)
// Bits of hwy/detect_targets.h: 0 to 7 are what is above AVX-512F (their names differ between versions), 11 and 12
// are SSE4 and SSSE3.
#define HWY_DISABLED_TARGETS 0x18FFLL
#else
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif

#endif  // HEEDFUL_KERNELS_SIMD_TARGETS_H_
