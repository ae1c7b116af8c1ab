#include <cmath>
#include <string>

#include "heedful/attention/rotary.h"
#include "heedful/core/error.h"
#include "heedful/decoder/config_names.h"
#include "heedful/lab/experiments.h"
#include "heedful/lab/small.h"
#include "heedful/report/claim.h"

namespace heedful {
namespace {

constexpr Index V = 21, kTrained = 16, kBeyond = 40;

// What a model built for kTrained positions says of a sequence of kBeyond, and whether the first kTrained positions
// keep their bits when the longer context is asked for.
struct Beyond {
  bool defined = false;
  Index changed = 0;
  std::string what;
};

Beyond beyond_trained_length(const Lab& lab, Position position) {
  DecoderConfig config{.vocabulary = V, .context = kTrained};
  config.position = position;
  Random random(4);
  Decoder<float> decoder{config, initial_parameters<float>(config, random)};
  Tensor<Index, 2> tokens({1, kBeyond}), first({1, kTrained});
  for (Index& token : tokens) token = random.integer(0, V);
  std::copy_n(tokens.data(), kTrained, first.data());
  Activations<float> activations;
  Tensor<float, 1> trained({kTrained * V}), again({kTrained * V});
  std::copy_n(decoder_forward<float>(lab.context(), activations, decoder, first).data(), trained.size(),
              trained.data());

  DecoderConfig longer = config;
  longer.context = kBeyond;
  if (parameter_count(longer) != parameter_count(config)) {
    return {
        false, 0,
        fmt::format("needs {} numbers that were never trained", parameter_count(longer) - parameter_count(config))};
  }
  const Decoder<float> extended{longer, decoder.parameters.copy()};
  Activations<float> wide;
  const auto logits = decoder_forward<float>(lab.context(), wide, extended, tokens);
  std::copy_n(logits.data(), again.size(), again.data());
  Beyond result{true, changed_bits(trained, again), "defined, with the same parameters"};
  for (Index i = 0; i < logits.size(); ++i) result.defined = result.defined && std::isfinite(logits.data()[i]);
  return result;
}

void measure_beyond(Report& report, const Lab& lab) {
  Table table{
      "a model for 16 positions, given 40", {"position", "parameters", "positions 17 … 40", "changed before"}, {}};
  for (const Position position :
       {Position::learned, Position::sinusoidal, Position::rotary, Position::alibi, Position::none}) {
    const std::string name(enum_name(position, kPositionNames));
    const Beyond beyond = beyond_trained_length(lab, position);
    const bool learned = position == Position::learned;
    table.rows.push_back({name, learned ? "context × C" : "0", beyond.what,
                          beyond.defined ? fmt::format("{} of {} logits", beyond.changed, kTrained * V) : "-"});
    report.claims.push_back(
        claim_that({fmt::format("{}: beyond the trained length it is {}", name, learned ? "not defined" : "defined"),
                    "article, §position"},
                   beyond.defined != learned && beyond.changed == 0,
                   learned ? "rows missing from the table" : "finite logits, earlier ones unchanged", beyond.what));
  }
  report.tables.push_back(std::move(table));
}

// q(m)·k(n) for one query and key turned to every pair of positions.
void measure_rotary_shift(Report& report) {
  constexpr Index D = 32, kPositions = 64;
  Random random(6);
  const auto q = draw_normal<double, 1>(random, {D}), k = draw_normal<double, 1>(random, {D});
  Tensor<double, 4> turned_q({1, 1, kPositions, D}), turned_k({1, 1, kPositions, D});
  Tensor<Index, 2> positions({1, kPositions});
  for (Index p = 0; p < kPositions; ++p) {
    positions(0, p) = p;
    for (Index d = 0; d < D; ++d) {
      turned_q(0, 0, p, d) = q(d);
      turned_k(0, 0, p, d) = k(d);
    }
  }
  for (const RotaryLayout layout : {RotaryLayout::interleaved, RotaryLayout::half_split}) {
    auto a = turned_q.copy(), b = turned_k.copy();
    const RotaryTable<double> table(kPositions, D, 10000);
    rotary_forward<double>(a.view(), a, positions, table, layout);
    rotary_forward<double>(b.view(), b, positions, table, layout);
    const auto dot = [&](Index m, Index n) {
      double sum = 0;
      for (Index d = 0; d < D; ++d) sum += a(0, 0, m, d) * b(0, 0, n, d);
      return sum;
    };
    double same_distance = 0, other_distance = 0;
    for (Index m = 0; m + 1 < kPositions; ++m) {
      for (Index n = 0; n <= m; ++n) {
        same_distance = std::max(same_distance, std::abs(dot(m, n) - dot(m - n, 0)));
        other_distance = std::max(other_distance, std::abs(dot(m, n) - dot(m + 1, n)));
      }
    }
    const std::string name(enum_name(layout, kRotaryLayoutNames));
    // 32 products near 1, each turned twice by angles up to 64 known to 64·1.1e-16.
    report.claims.push_back(claim_at_most(
        {fmt::format("rotary, {}: q(m)·k(n) depends on m − n alone; largest change under a shift", name),
         "article, §position; arXiv:2104.09864"},
        1e-12, same_distance));
    report.claims.push_back(
        claim_at_least({fmt::format("… and does depend on it: largest change where m − n grows by 1 ({})", name), ""},
                       0.1, other_distance));
  }
}

}  // namespace

void run_positions(Report& report, const Lab& lab) {
  measure_beyond(report, lab);
  measure_rotary_shift(report);
  report.notes.emplace_back(
      "Defined is not the same as useful: that a position has numbers beyond the trained length says nothing about "
      "how well the "
      "model answers there.");
}

}  // namespace heedful
