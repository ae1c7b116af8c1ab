// An n-gram model of tokens by interpolated Kneser–Ney smoothing: what a decoder has to beat.
//
//     P_k(w | h) = (max(c_k(hw) − D_k, 0) + D_k·N_k(h)·P_{k−1}(w | h')) / c_k(h·)      h' = h without its first token
//     P_0(w) = 1/V
//
//     c_n(g) = how often g occurs; below the top order, c_k(g) = how many different tokens stand before g
//     c_k(h·) = Σ_w c_k(hw),   N_k(h) = how many w have c_k(hw) > 0;   a context never seen takes P_{k−1}
//     D_k = n₁/(n₁ + 2n₂), n_i = how many g have c_k(g) = i;   0.5 where n₁ is 0
//
// Sources: Kneser & Ney, ICASSP 1995; Chen & Goodman, TR-10-98, §4 (interpolation, the discount).
#ifndef HEEDFUL_TRAINING_NGRAM_H_
#define HEEDFUL_TRAINING_NGRAM_H_

#include <unordered_map>
#include <vector>

#include "heedful/training/tokens.h"

namespace heedful {

class NGram {
 public:
  // Counts the parts, which must outlive the model; no gram reaches from one into the next. Throws Error for an order
  // or a vocabulary below 1.
  NGram(const std::vector<TokensView>& parts, Index order, Index vocabulary);

  // P(token | the tokens before it), of which the last order − 1 are read, or as many as there are.
  double probability(TokensView before, char32_t token) const;

 private:
  struct Context {
    double total = 0, distinct = 0;
  };
  struct Order {
    std::unordered_map<TokensView, Index> counts;  // of hw
    std::unordered_map<TokensView, Context> contexts;
    double discount = 0.5;
  };
  std::vector<Order> orders_;  // order k at [k − 1]
  double uniform_;
};

}  // namespace heedful

#endif  // HEEDFUL_TRAINING_NGRAM_H_
