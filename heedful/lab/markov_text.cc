#include "heedful/lab/markov_text.h"

#include <cmath>

#include "heedful/core/error.h"
#include "heedful/core/random.h"
#include "heedful/core/tensor.h"

namespace heedful {

MarkovText write_markov_text(Index letters, Index length, double sharpness, std::uint64_t seed) {
  require(2 <= letters && letters <= 26, "markov text", "letters: expected 2 to 26, got {}", letters);
  require(length >= 2, "markov text", "length: expected at least 2, got {}", length);
  Random random(seed);
  Tensor<double, 3> next({letters, letters, letters});  // [before last, last, next], each row a distribution
  for (Index u = 0; u < letters; ++u) {
    for (Index v = 0; v < letters; ++v) {
      double sum = 0;
      for (Index w = 0; w < letters; ++w) sum += next(u, v, w) = std::exp(sharpness * random.normal());
      for (Index w = 0; w < letters; ++w) next(u, v, w) /= sum;
    }
  }
  MarkovText result;
  Index u = 0, v = 0;
  for (Index t = 0; t < length; ++t) {
    Index w = 0;
    if (t < 2) {
      w = random.integer(0, letters);
      result.nats.push_back(std::log(static_cast<double>(letters)));
    } else {
      for (double left = random.uniform() - next(u, v, 0); left >= 0 && w + 1 < letters; left -= next(u, v, w)) ++w;
      result.nats.push_back(-std::log(next(u, v, w)));
    }
    result.text += static_cast<char>('a' + w);
    u = v;
    v = w;
  }
  return result;
}

}  // namespace heedful
