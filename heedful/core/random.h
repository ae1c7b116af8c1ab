// Random(seed) draws the same numbers as NumPy's numpy.random.default_rng(seed), bit for bit and in any interleaving:
// SeedSequence → PCG64 (XSL-RR, 128-bit) → ziggurat normals, Lemire's bounded integers, Fisher–Yates permutations.
//
// Sources: O'Neill, PCG (HMC-CS-2014-0905); Marsaglia & Tsang, ziggurat (J. Stat. Softw. 5(8)); Lemire,
// arXiv:1805.10941; NumPy's documentation of SeedSequence, PCG64 and Generator.
#ifndef HEEDFUL_CORE_RANDOM_H_
#define HEEDFUL_CORE_RANDOM_H_

#include <cstdint>
#include <span>
#include <vector>

#include "heedful/core/view.h"

namespace heedful {

class Random {
 public:
  explicit Random(std::uint64_t seed);

  double uniform();                                           // [0, 1), default_rng().random()
  double normal();                                            // default_rng().normal(), mean 0, deviation 1
  std::int64_t integer(std::int64_t low, std::int64_t high);  // [low, high), default_rng().integers(low, high)
  std::vector<Index> permutation(Index n);                    // of 0 … n − 1

  // The whole state, so that a stopped run resumes on the same stream.
  struct State {
    std::uint64_t state_high, state_low, increment_high, increment_low;
    bool has_buffered;
    std::uint32_t buffered;
  };
  State state() const;
  void set_state(const State& state);

 private:
  std::uint64_t next64();
  std::uint32_t next32();  // halves of one next64, the second kept for the next call

  unsigned __int128 state_ = 0, increment_ = 0;
  bool has_buffered_ = false;
  std::uint32_t buffered_ = 0;
};

}  // namespace heedful

#endif  // HEEDFUL_CORE_RANDOM_H_
