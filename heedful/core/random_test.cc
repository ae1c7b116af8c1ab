#include "heedful/core/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "heedful/core/error.h"
#include "heedful/core/random_ziggurat.h"

namespace heedful {
namespace {

// The expected numbers of the literal tests were printed by NumPy 2.4, numpy.random.default_rng(seed).

TEST(RandomTest, SmallSeedInterleaved) {
  Random random(0);
  for (double expected : {0x1.017ed89db8441p-3, -0x1.0e8cfe9bd45ccp-3, 0x1.47e57a468b06dp-1}) {
    EXPECT_EQ(random.normal(), expected);
  }
  for (std::int64_t expected : {1, 0, 3}) EXPECT_EQ(random.integer(0, 20), expected);
  for (double expected : {0x1.d354b2f34c803p-1, 0x1.3698f6e301db6p-1}) EXPECT_EQ(random.uniform(), expected);
  EXPECT_EQ(random.integer(-(std::int64_t{1} << 62), std::int64_t{1} << 62), 2116732163134147874);
  EXPECT_EQ(random.integer(0, std::int64_t{1} << 32), 3492969080);
  EXPECT_EQ(random.permutation(5), (std::vector<Index>{3, 2, 0, 1, 4}));
  EXPECT_EQ(random.integer(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()),
            6592945221060195823);
}

TEST(RandomTest, SeedOfMoreThan32Bits) {
  Random random(12345678901234567890u);
  for (double expected : {-0x1.0dedbbfcf8f76p-6, 0x1.83eccc3a086bep-2, -0x1.f563a28ce984ep-2}) {
    EXPECT_EQ(random.normal(), expected);
  }
  for (std::int64_t expected : {16, 19, 12}) EXPECT_EQ(random.integer(0, 20), expected);
}

// Ranges of three quarters of a word: every fourth draw is refused and drawn again.
TEST(RandomTest, RefusedDraws) {
  Random random(3);
  const std::vector<std::int64_t> wide{-5947084929996955913, 1862306707490894120,  -7921096806793966774,
                                       -3231035673376432443, -2595669515618052247, -7013374879163031848,
                                       939545498975503973,   -7650713041980968769};
  for (std::int64_t expected : wide) {
    EXPECT_EQ(random.integer(std::numeric_limits<std::int64_t>::min(), std::int64_t{1} << 62), expected);
  }
  const std::vector<std::int64_t> narrow{1456401909, 1260234212, 2859884529, 2146413539,
                                         1890210504, 556732663,  2376741874, 2437634506};
  for (std::int64_t expected : narrow) EXPECT_EQ(random.integer(0, std::int64_t{3} << 30), expected);
  EXPECT_EQ(random.integer(0, 1000), 956);
}

TEST(RandomTest, TailOfTheNormals) {
  Random random(1);
  std::vector<std::pair<int, double>> far;
  for (int i = 0; i < 10000; ++i) {
    const double value = random.normal();
    if (std::abs(value) > ziggurat::kTailStart) far.emplace_back(i, value);
  }
  EXPECT_EQ(far, (std::vector<std::pair<int, double>>{{860, 0x1.e035931978327p+1},
                                                      {3284, 0x1.dbdba47b03290p+1},
                                                      {4912, 0x1.f7447f61adda7p+1},
                                                      {9176, -0x1.d50621848197dp+1},
                                                      {9460, -0x1.eb3f1112c3d24p+1}}));
}

// Every operation rounded to double, the exponential and the logarithm by way of long double: exact, no tolerance.
TEST(RandomTest, ZigguratTablesFollowTheirRecurrence) {
  using ziggurat::kF, ziggurat::kX;
  if (std::numeric_limits<long double>::digits < 64) GTEST_SKIP() << "long double is no wider than double here";
  const auto wide_exp = [](double x) { return static_cast<double>(std::exp(static_cast<long double>(x))); };
  const auto wide_log = [](double x) { return static_cast<double>(std::log(static_cast<long double>(x))); };
  for (std::size_t i = 1; i < 256; ++i) {
    const double f = wide_exp(-0.5 * kX[i] * kX[i]);
    EXPECT_EQ(kF[i], i == 38 ? std::nextafter(f, 1.0) : f) << i;
  }
  for (std::size_t i = 1; i < 255; ++i) {
    EXPECT_EQ(kX[i], std::sqrt(-2 * wide_log(ziggurat::kArea / kX[i + 1] + kF[i + 1]))) << i;
  }
  EXPECT_EQ(kX[255], ziggurat::kTailStart);
  EXPECT_EQ(kX[0], ziggurat::kArea / kF[255]);
  EXPECT_EQ(kF[0], 1.0);
}

TEST(RandomTest, OneValueDrawsNothing) {
  Random random(7), untouched(7);
  EXPECT_EQ(random.integer(5, 6), 5);
  EXPECT_EQ(random.permutation(1), std::vector<Index>{0});
  EXPECT_TRUE(random.permutation(0).empty());
  EXPECT_EQ(random.uniform(), untouched.uniform());
}

TEST(RandomTest, StateResumesInTheMiddleOfADraw) {
  Random random(11);
  random.integer(0, 9);  // leaves half a draw behind
  const Random::State state = random.state();
  EXPECT_TRUE(state.has_buffered);
  Random resumed(0);
  resumed.set_state(state);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(resumed.integer(0, 9), random.integer(0, 9));
    EXPECT_EQ(resumed.normal(), random.normal());
  }
}

TEST(RandomTest, RefusesEmptyRangesAndEvenIncrements) {
  Random random(0);
  EXPECT_THROW(random.integer(3, 3), Error);
  EXPECT_THROW(random.integer(3, 2), Error);
  EXPECT_THROW(random.permutation(-1), Error);
  Random::State state = random.state();
  state.increment_low ^= 1;
  EXPECT_THROW(random.set_state(state), Error);
}

TEST(RandomTest, MatchesRecordedNumpyStreams) {
  const std::filesystem::path path = std::filesystem::path(HEEDFUL_GOLDENS) / "numpy/random_streams.json";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no recorded streams at " << path;
  const nlohmann::json streams = nlohmann::json::parse(std::ifstream(path));
  ASSERT_FALSE(streams.empty());
  for (const auto& [seed, stream] : streams.items()) {
    SCOPED_TRACE("seed " + seed);
    Random random(std::stoull(seed));
    const auto expect_reals = [&, &record = stream](const char* key, double (Random::*draw)()) {
      for (const nlohmann::json& expected : record.at(key)) {
        EXPECT_EQ((random.*draw)(), std::stod(expected.get<std::string>())) << key;
      }
    };
    const auto expect_integers = [&, &record = stream](const char* key, std::int64_t low, std::int64_t high) {
      for (const nlohmann::json& expected : record.at(key)) {
        EXPECT_EQ(random.integer(low, high), expected.get<std::int64_t>()) << key;
      }
    };
    expect_reals("normal_60", &Random::normal);
    expect_integers("then_integers_0_20_x33", 0, 20);
    expect_reals("then_normal_7", &Random::normal);
    expect_integers("then_integers_0_21_x5", 0, 21);
    expect_reals("then_random_9", &Random::uniform);
    expect_integers("then_integers_0_2p40_x6", 0, std::int64_t{1} << 40);
    EXPECT_EQ(random.permutation(6), stream.at("then_permutation_6").get<std::vector<Index>>());
    EXPECT_EQ(random.permutation(100), stream.at("then_permutation_100").get<std::vector<Index>>());
    expect_integers("then_integers_minus5_5_x4", -5, 5);

    Random fresh(std::stoull(seed));
    std::vector<double> normals(1000000);
    std::ranges::generate(normals, [&] { return fresh.normal(); });
    const auto magnitude = [](double value) { return std::abs(value); };
    // Two orders of summation: NumPy's is pairwise, log2(10^6) ≈ 20 roundings of at most Σ|z| ≈ 0.8·10^6 deep; ours
    // in long double adds less. One draw accepted or refused otherwise would shift the stream and move the sum by
    // ~10^3.
    const long double sum = std::accumulate(normals.begin(), normals.end(), 0.0L);
    EXPECT_NEAR(static_cast<double>(sum), std::stod(stream.at("million_normals_sum").get<std::string>()),
                20 * 0.8e6 * 0x1p-53);
    EXPECT_EQ(magnitude(std::ranges::max(normals, {}, magnitude)),
              std::stod(stream.at("million_normals_abs_max").get<std::string>()));
  }
}

}  // namespace
}  // namespace heedful
