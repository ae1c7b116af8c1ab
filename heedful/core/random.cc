#include "heedful/core/random.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "heedful/core/error.h"
#include "heedful/core/random_ziggurat.h"

namespace heedful {
namespace {

using Wide = unsigned __int128;

Wide wide(std::uint64_t high, std::uint64_t low) {
  return Wide{high} << 64 | low;
}
std::uint64_t high_half(Wide value) {
  return static_cast<std::uint64_t>(value >> 64);
}
std::uint64_t low_half(Wide value) {
  return static_cast<std::uint64_t>(value);
}

const Wide kMultiplier = wide(0x2360ED051FC65DA4, 0x4385DF649FCCF645);

// SeedSequence: spreads the seed over a pool of four words until every word depends on every other, then draws as
// many words from the pool as the generator's state needs.
std::array<std::uint64_t, 4> spread_seed(std::uint64_t seed) {
  std::uint32_t key = 0x43B0D7E5;
  const auto hash = [&key](std::uint32_t value, std::uint32_t multiplier) {
    value ^= key;
    key *= multiplier;
    value *= key;
    return value ^ value >> 16;
  };
  const auto mix = [](std::uint32_t left, std::uint32_t right) {
    const std::uint32_t mixed = 0xCA01F9DD * left - 0x4973F715 * right;
    return mixed ^ mixed >> 16;
  };

  std::array<std::uint32_t, 4> pool{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32), 0, 0};
  for (std::uint32_t& word : pool) word = hash(word, 0x931E8875);
  for (std::size_t from = 0; from < pool.size(); ++from) {
    for (std::size_t to = 0; to < pool.size(); ++to) {
      if (from != to) pool[to] = mix(pool[to], hash(pool[from], 0x931E8875));
    }
  }

  key = 0x8B51F9DD;
  std::array<std::uint64_t, 4> words{};
  for (std::size_t i = 0; i < 2 * words.size(); ++i) {
    words[i / 2] |= std::uint64_t{hash(pool[i % pool.size()], 0x58F38DED)} << (32 * (i % 2));
  }
  return words;
}

}  // namespace

Random::Random(std::uint64_t seed) {
  const std::array<std::uint64_t, 4> words = spread_seed(seed);
  increment_ = wide(words[2], words[3]) << 1 | 1;
  state_ = (increment_ + wide(words[0], words[1])) * kMultiplier + increment_;
}

std::uint64_t Random::next64() {
  state_ = state_ * kMultiplier + increment_;
  const std::uint64_t folded = high_half(state_) ^ low_half(state_);
  return std::rotr(folded, static_cast<int>(high_half(state_) >> 58));
}

std::uint32_t Random::next32() {
  if (std::exchange(has_buffered_, false)) return buffered_;
  const std::uint64_t both = next64();
  has_buffered_ = true;
  buffered_ = static_cast<std::uint32_t>(both >> 32);
  return static_cast<std::uint32_t>(both);
}

double Random::uniform() {
  return static_cast<double>(next64() >> 11) * 0x1p-53;
}

double Random::normal() {
  for (;;) {
    const std::uint64_t bits = next64();
    const std::size_t box = bits & 0xFF;
    const bool negative = bits >> 8 & 1;
    const std::uint64_t along = bits >> 9 & ((std::uint64_t{1} << 52) - 1);
    const double distance = static_cast<double>(along) * (ziggurat::kX[box] * 0x1p-52);
    const double value = 0.0 + (negative ? -distance : distance);  // never −0
    if (along < ziggurat::kInside[box]) return value;
    if (box == 0) {
      for (;;) {
        const double beyond = -ziggurat::kInverseTailStart * std::log1p(-uniform());
        const double height = -std::log1p(-uniform());
        if (height + height > beyond * beyond) {
          const double far = ziggurat::kTailStart + beyond;
          return along >> 8 & 1 ? -far : far;  // this bit, not `negative`: NumPy's choice
        }
      }
    }
    const double height = (ziggurat::kF[box - 1] - ziggurat::kF[box]) * uniform() + ziggurat::kF[box];
    if (height < std::exp(-0.5 * distance * distance)) return value;
  }
}

// Lemire: the top half of draw · count is uniform in [0, count) once the few draws are refused whose bottom half lies
// below 2^width mod count.
std::int64_t Random::integer(std::int64_t low, std::int64_t high) {
  require(low < high, "random", "range: expected low < high, got [{}, {})", low, high);
  const std::uint64_t last = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) - 1;
  const auto from_low = [low](std::uint64_t offset) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + offset);
  };
  if (last == 0) return low;
  if (last == std::numeric_limits<std::uint32_t>::max()) return from_low(next32());
  const std::uint64_t count = last + 1;
  if (last < std::numeric_limits<std::uint32_t>::max()) {
    const std::uint64_t refused = (std::uint64_t{1} << 32) % count;
    for (;;) {
      const std::uint64_t product = next32() * count;
      if (static_cast<std::uint32_t>(product) >= refused) return from_low(product >> 32);
    }
  }
  const std::uint64_t refused = (~count + 1) % count;  // (2^64 − count) mod count; [low, high) is never all of 2^64
  for (;;) {
    const Wide product = Wide{next64()} * count;
    if (low_half(product) >= refused) return from_low(high_half(product));
  }
}

// Fisher–Yates from the back. NumPy picks the partner by masking and trying again, not by Lemire's product.
std::vector<Index> Random::permutation(Index n) {
  require(n >= 0, "random", "permutation: expected at least 0 elements, got {}", n);
  std::vector<Index> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), Index{0});
  for (std::size_t i = order.size(); i-- > 1;) {
    const std::uint64_t mask = std::bit_ceil(std::uint64_t{i} + 1) - 1;
    std::uint64_t partner = 0;
    do {
      partner = (mask >> 32 == 0 ? next32() : next64()) & mask;
    } while (partner > i);
    std::swap(order[i], order[partner]);
  }
  return order;
}

Random::State Random::state() const {
  return {high_half(state_), low_half(state_), high_half(increment_), low_half(increment_), has_buffered_, buffered_};
}

void Random::set_state(const State& state) {
  require(state.increment_low % 2 == 1, "random", "state: expected an odd increment, got {}", state.increment_low);
  state_ = wide(state.state_high, state.state_low);
  increment_ = wide(state.increment_high, state.increment_low);
  has_buffered_ = state.has_buffered;
  buffered_ = state.buffered;
}

}  // namespace heedful
