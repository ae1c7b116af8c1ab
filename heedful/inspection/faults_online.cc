// The softmax computed block by block keeps a running maximum; whatever was summed under an old maximum must shrink
// when it rises, and the last block is short when Tk is not a multiple. Rising scores and an odd Tk show both.
#include <algorithm>
#include <cmath>
#include <limits>

#include "heedful/inspection/faults.h"

namespace heedful::diagnosis {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Calls work(weights, maximum_at(j), final maximum, lse) for every row that sees a key, where maximum_at(j) is the
// running maximum when the block of key j was summed.
template <class Work>
void by_blocks(Walk& w, Index block, const Work& work) {
  std::vector<double> running(static_cast<std::size_t>(w.Tk));
  for (Index row = 0; row < w.lse.size(); ++row) {
    const double* scores = w.scores.data() + row * w.Tk;
    const bool* excluded = w.excluded.data() + row * w.Tk;
    double maximum = -kInfinity;
    for (Index start = 0; start < w.Tk; start += block) {
      const Index end = std::min(start + block, w.Tk);
      for (Index j = start; j < end; ++j) {
        if (!excluded[j]) maximum = std::max(maximum, scores[j]);
      }
      for (Index j = start; j < end; ++j) running[static_cast<std::size_t>(j)] = maximum;
    }
    if (maximum > -kInfinity) work(row, running, maximum);
  }
}

template <class SpoilWithBlock>
std::vector<Variant> for_blocks(const SpoilWithBlock& spoil) {
  std::vector<Variant> variants;
  for (const Index block : {2, 4, 8, 16, 32, 64, 128, 256}) {
    variants.push_back({fmt::format("blocks of {}", block), [spoil, block](Recipe& r) { spoil(r, block); }});
  }
  return variants;
}

// What was accumulated under the old maximum is not multiplied by exp(old − new).
void output_not_rescaled(Recipe& r, Index block) {
  r.normalize = [softmax = r.normalize, block](Walk& w) {
    softmax(w);
    by_blocks(w, block, [&](Index row, const std::vector<double>& running, double maximum) {
      for (Index j = 0; j < w.Tk; ++j) {
        if (w.excluded.data()[row * w.Tk + j]) continue;
        w.weights.data()[row * w.Tk + j] *= std::exp(maximum - running[static_cast<std::size_t>(j)]);
      }
    });
  };
}

void sum_not_rescaled(Recipe& r, Index block) {
  r.normalize = [softmax = r.normalize, block](Walk& w) {
    softmax(w);
    by_blocks(w, block, [&](Index row, const std::vector<double>& running, double maximum) {
      double sum = 0, right_sum = 0;
      for (Index j = 0; j < w.Tk; ++j) {
        const Index at = row * w.Tk + j;
        if (w.excluded.data()[at]) continue;
        sum += std::exp(w.scores.data()[at] - running[static_cast<std::size_t>(j)]);
        right_sum += std::exp(w.scores.data()[at] - maximum);
      }
      for (Index j = 0; j < w.Tk; ++j) w.weights.data()[row * w.Tk + j] *= right_sum / sum;
      w.lse.data()[row] = maximum + std::log(sum);
    });
  };
}

// Each block is normalised by itself and the blocks are added.
void blocks_added(Recipe& r, Index block) {
  r.normalize = [softmax = r.normalize, block](Walk& w) {
    softmax(w);
    for (Index row = 0; row < w.lse.size(); ++row) {
      double* weights = w.weights.data() + row * w.Tk;
      for (Index start = 0; start < w.Tk; start += block) {
        double sum = 0;
        const Index end = std::min(start + block, w.Tk);
        for (Index j = start; j < end; ++j) sum += weights[j];
        for (Index j = start; j < end && sum > 0; ++j) weights[j] /= sum;
      }
    }
  };
}

void tail_dropped(Recipe& r, Index block) {
  r.keep = [right = r.keep, block](const Walk& w, Index b, Index h, Index i, Index j) {
    return right(w, b, h, i, j) && j < w.Tk / block * block;
  };
}

// The last block is filled up with zero keys, which score 0 and are counted.
void tail_counted(Recipe& r, Index block) {
  r.normalize = [softmax = r.normalize, block](Walk& w) {
    softmax(w);
    const double extra = static_cast<double>((block - w.Tk % block) % block);
    for (Index row = 0; row < w.lse.size(); ++row) {
      double& lse = w.lse.data()[row];
      if (!std::isfinite(lse)) continue;
      const double largest = std::max(lse, 0.0);
      const double longer = largest + std::log(std::exp(lse - largest) + extra * std::exp(-largest));
      for (Index j = 0; j < w.Tk; ++j) w.weights.data()[row * w.Tk + j] *= std::exp(lse - longer);
      lse = longer;
    }
  };
}

}  // namespace

std::vector<Fault> online_faults() {
  using enum Group;
  return {
      {"online_output_not_rescaled", online, kNormalize, for_blocks(output_not_rescaled),
       "the output so far is not shrunk when the maximum rises", "rows sum to more than 1 where scores rise",
       "Multiply the output by exp(old maximum − new maximum)."},
      {"online_sum_not_rescaled", online, kNormalize, for_blocks(sum_not_rescaled),
       "the running sum is not shrunk when the maximum rises", "rows sum to less than 1 where scores rise",
       "Multiply the sum by exp(old maximum − new maximum)."},
      {"online_blocks_added", online, kNormalize, for_blocks(blocks_added),
       "each block is normalised by itself and the results are added", "rows sum to the number of blocks",
       "Normalise once, by the sum over all blocks."},
      {"online_tail_dropped", online, kKeep, for_blocks(tail_dropped),
       "keys of an incomplete last block are not read", "right where Tk is a multiple of the block",
       "Handle the last, shorter block."},
      {"online_tail_counted", online, kNormalize, for_blocks(tail_counted),
       "an incomplete last block is filled with zero keys that count in the sum",
       "rows sum to less than 1 where Tk is no multiple", "Exclude the keys beyond Tk."},
  };
}

}  // namespace heedful::diagnosis
