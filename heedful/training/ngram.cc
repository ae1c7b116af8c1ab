#include "heedful/training/ngram.h"

#include <algorithm>

#include "heedful/core/error.h"

namespace heedful {

NGram::NGram(const std::vector<TokensView>& parts, Index order, Index vocabulary)
    : uniform_(1 / static_cast<double>(vocabulary)) {
  require(1 <= order && order <= 64, "ngram", "order: expected 1 to 64, got {}", order);
  require(vocabulary >= 1, "ngram", "vocabulary: expected at least 1, got {}", vocabulary);
  orders_.resize(static_cast<std::size_t>(order));
  for (const TokensView part : parts) {
    for (std::size_t i = 0; i + orders_.size() <= part.size(); ++i) {
      ++orders_.back().counts[part.substr(i, orders_.size())];
    }
  }
  for (std::size_t k = orders_.size() - 1; k > 0; --k) {
    for (const auto& [gram, count] : orders_[k].counts) ++orders_[k - 1].counts[gram.substr(1)];
  }
  for (Order& each : orders_) {
    double once = 0, twice = 0;
    for (const auto& [gram, count] : each.counts) {
      Context& context = each.contexts[gram.substr(0, gram.size() - 1)];
      context.total += static_cast<double>(count);
      ++context.distinct;
      if (count == 1) ++once;
      if (count == 2) ++twice;
    }
    if (once > 0) each.discount = once / (once + 2 * twice);
  }
}

double NGram::probability(TokensView before, char32_t token) const {
  const std::size_t longest = std::min(orders_.size() - 1, before.size());
  Tokens gram(before.substr(before.size() - longest));
  gram.push_back(token);
  double result = uniform_;
  for (std::size_t k = 0; k <= longest; ++k) {
    const Order& order = orders_[k];
    const TokensView hw = TokensView(gram).substr(longest - k);
    const auto context = order.contexts.find(hw.substr(0, k));
    if (context == order.contexts.end()) break;  // nor was any longer one seen
    const auto found = order.counts.find(hw);
    const double count = found == order.counts.end() ? 0 : static_cast<double>(found->second);
    result = (std::max(count - order.discount, 0.0) + order.discount * context->second.distinct * result) /
             context->second.total;
  }
  return result;
}

}  // namespace heedful
