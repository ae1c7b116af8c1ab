#include "heedful/lab/markov_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

#include "heedful/core/error.h"

namespace heedful {
namespace {

// The share of each letter after each pair is what the source said it would be: n of N draws of probability p deviate
// by less than 5·√(p(1 − p)/N), once in 1.7 million.
TEST(MarkovText, WritesWithTheProbabilitiesThatItStates) {
  const MarkovText written = write_markov_text(3, 60000, 1, 5);
  ASSERT_EQ(written.text.size(), 60000U);
  ASSERT_EQ(written.nats.size(), 60000U);
  std::map<std::string, double> pairs, triples, probability;
  for (std::size_t t = 2; t < written.text.size(); ++t) {
    const std::string triple = written.text.substr(t - 2, 3);
    ++pairs[triple.substr(0, 2)];
    ++triples[triple];
    const double p = std::exp(-written.nats[t]);
    const auto [known, is_new] = probability.try_emplace(triple, p);
    EXPECT_EQ(known->second, p) << triple;
  }
  EXPECT_EQ(triples.size(), 27U);
  for (const auto& [pair, count] : pairs) {
    double sum = 0;
    for (const char c : {'a', 'b', 'c'}) {
      const double p = probability[pair + c];
      EXPECT_NEAR(triples[pair + c] / count, p, 5 * std::sqrt(p * (1 - p) / count)) << pair << c;
      sum += p;
    }
    EXPECT_NEAR(sum, 1, 1e-14) << pair;  // three quotients, each rounded once
  }
}

TEST(MarkovText, TheFirstTwoLettersAreUniform) {
  const MarkovText written = write_markov_text(4, 3, 1, 0);
  EXPECT_EQ(written.nats[0], std::log(4.0));
  EXPECT_EQ(written.nats[1], std::log(4.0));
}

TEST(MarkovText, RefusesWhatCannotBeWritten) {
  EXPECT_THROW(write_markov_text(1, 100, 1, 0), Error);
  EXPECT_THROW(write_markov_text(27, 100, 1, 0), Error);
  EXPECT_THROW(write_markov_text(3, 1, 1, 0), Error);
}

}  // namespace
}  // namespace heedful
