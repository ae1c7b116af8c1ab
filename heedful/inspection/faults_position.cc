// Rotary positions turn q and k alike, so that q·k depends on the distance alone. Shifting all positions by one number
// must change nothing; shifting q alone must.
#include <cmath>

#include "heedful/inspection/faults.h"

namespace heedful::diagnosis {
namespace {

bool has_layout(const AttentionCase& given, RotaryLayout layout) {
  return !given.declared.rotary || given.declared.rotary->layout == layout;
}
bool is_interleaved(const AttentionCase& given) {
  return has_layout(given, RotaryLayout::interleaved);
}
bool is_half_split(const AttentionCase& given) {
  return has_layout(given, RotaryLayout::half_split);
}
bool has_room_in_values(const AttentionCase& given) {
  return !given.declared.rotary || given.D() == given.E();
}
bool has_another_base(const AttentionCase& given) {
  return !given.declared.rotary || given.declared.rotary->base != 10000;
}

Index nowhere(const Walk&, Index, Index) {
  return 0;
}

void missing(Recipe& r) {
  r.query_rotation = r.key_rotation = nowhere;
}
void not_on_keys(Recipe& r) {
  r.key_rotation = nowhere;
}
void not_on_queries(Recipe& r) {
  r.query_rotation = nowhere;
}

void other_pairs(Recipe& r) {
  r.layout = [right = r.layout](const Walk& w) {
    return right(w) == RotaryLayout::interleaved ? RotaryLayout::half_split : RotaryLayout::interleaved;
  };
}

void queries_restart(Recipe& r) {
  r.query_rotation = [](const Walk&, Index, Index i) { return i; };
}

void queries_ahead(Recipe& r) {
  r.query_rotation = [right = r.query_rotation](const Walk& w, Index b, Index i) { return right(w, b, i) + 1; };
}

void positions_ignored(Recipe& r) {
  r.query_rotation = [](const Walk& w, Index, Index i) { return i + w.Tk - w.Tq; };
  r.key_rotation = [](const Walk&, Index, Index j) { return j; };
}

void first_sequence_positions(Recipe& r) {
  r.query_rotation = [right = r.query_rotation](const Walk& w, Index, Index i) { return right(w, 0, i); };
  r.key_rotation = [right = r.key_rotation](const Walk& w, Index, Index j) { return right(w, 0, j); };
}

void backwards(Recipe& r) {
  r.query_rotation = [right = r.query_rotation](const Walk& w, Index b, Index i) { return -right(w, b, i); };
  r.key_rotation = [right = r.key_rotation](const Walk& w, Index b, Index j) { return -right(w, b, j); };
}

void keys_backwards(Recipe& r) {
  r.key_rotation = [right = r.key_rotation](const Walk& w, Index b, Index j) { return -right(w, b, j); };
}

void twice(Recipe& r) {
  r.query_rotation = [right = r.query_rotation](const Walk& w, Index b, Index i) { return 2 * right(w, b, i); };
  r.key_rotation = [right = r.key_rotation](const Walk& w, Index b, Index j) { return 2 * right(w, b, j); };
}

// The base is `factor` times the declared one.
Variant base_times(double factor, std::string_view label) {
  return {std::string(label), [factor](Recipe& r) {
            r.frequency = [factor](const Walk& w, Index m) {
              return std::pow(factor * w.given.declared.rotary->base,
                              -2.0 * static_cast<double>(m) / static_cast<double>(w.given.rotary_width()));
            };
          }};
}

void usual_base(Recipe& r) {
  r.frequency = [](const Walk& w, Index m) {
    return std::pow(10000.0, -2.0 * static_cast<double>(m) / static_cast<double>(w.given.rotary_width()));
  };
}

void exponent_halved(Recipe& r) {
  r.frequency = [right = r.frequency](const Walk& w, Index m) { return std::sqrt(right(w, m)); };
}

void exponent_doubled(Recipe& r) {
  r.frequency = [right = r.frequency](const Walk& w, Index m) { return right(w, m) * right(w, m); };
}

void exponent_of_model_width(Recipe& r) {
  r.frequency = [right = r.frequency](const Walk& w, Index m) {
    return std::pow(right(w, m), 1 / static_cast<double>(w.H));
  };
}

void exponent_shifted(Recipe& r) {
  r.frequency = [right = r.frequency](const Walk& w, Index m) { return right(w, m + 1); };
}

void frequencies_reversed(Recipe& r) {
  r.frequency = [right = r.frequency](const Walk& w, Index m) {
    return right(w, w.given.rotary_width() / 2 - 1 - m);
  };
}

void on_values_too(Recipe& r) {
  r.rotate = [rotate = r.rotate](Walk& w) {
    rotate(w);
    if (!w.given.declared.rotary) return;
    turn(w, w.v, w.recipe.key_rotation, 1);
  };
}

}  // namespace

std::vector<Fault> position_faults() {
  using enum Group;
  const std::string_view frequency = "Pair m turns by position · base^(−2m/D), with m = 0 … D/2 − 1.";
  return {
      {"position_missing", position, kRotation, missing, "no rotary position is applied",
       "permuting the keys permutes nothing else", "Rotate q and k by their positions."},
      {"position_half_for_interleaved", position, kRotation, other_pairs,
       "pairs (m, m + D/2) stand for pairs (2m, 2m + 1)", "right at distance 0",
       "Pair neighbours, or permute the weights once on load.", is_interleaved},
      {"position_interleaved_for_half", position, kRotation, other_pairs,
       "pairs (2m, 2m + 1) stand for pairs (m, m + D/2)", "right at distance 0",
       "Pair m with m + D/2, or permute the weights once on load.", is_half_split},
      {"position_not_on_keys", position, kRotation, not_on_keys, "only the queries are rotated",
       "scores depend on the query's place, not on the distance", "Rotate the keys too."},
      {"position_not_on_queries", position, kRotation, not_on_queries, "only the keys are rotated",
       "scores depend on the key's place, not on the distance", "Rotate the queries too."},
      {"position_queries_restart", position, kRotation, queries_restart,
       "query positions restart at 0 though keys are cached",
       "right for the prompt, wrong from the first cached step on", "Start query positions at the cache length."},
      {"position_queries_ahead", position, kRotation, queries_ahead, "query positions are one too large",
       "every distance is one too large", "Give a token the same position as query and as key."},
      {"position_ignored", position, kRotation, positions_ignored, "0, 1, 2, … stands for the positions given",
       "right without left padding or offsets", "Count positions from the first real token."},
      {"position_of_first_sequence", position, kRotation, first_sequence_positions,
       "every sequence uses the positions of sequence 0", "batch 0 is right", "Index positions by batch."},
      {"position_backwards", position, kRotation, backwards, "q and k are turned the other way",
       "distance d acts as −d", "Use x·cos − y·sin and x·sin + y·cos."},
      {"position_keys_backwards", position, kRotation, keys_backwards, "keys are turned against the queries",
       "scores depend on the sum of positions", "Turn q and k the same way."},
      {"position_twice", position, kRotation, twice, "the rotation is applied twice", "distance d acts as 2d",
       "Rotate before the cache or after it, not both."},
      {"position_base", position, kRotation,
       std::vector<Variant>{{"base 10000", usual_base, has_another_base},
                            base_times(50, "base × 50"),
                            base_times(100, "base × 100"),
                            base_times(10, "base × 10"),
                            base_times(0.02, "base / 50"),
                            base_times(0.01, "base / 100"),
                            base_times(0.1, "base / 10")},
       "another base is used", "near keys are right, far keys are not", "Take the base from the model's metadata."},
      {"position_exponent_halved", position, kRotation, exponent_halved, "the exponent is m/D, not 2m/D",
       "high pairs turn too fast", frequency},
      {"position_exponent_doubled", position, kRotation, exponent_doubled, "the exponent is 4m/D, not 2m/D",
       "high pairs turn too slowly", frequency},
      {"position_exponent_of_model_width", position, kRotation, exponent_of_model_width,
       "H·D stands for D in the exponent", "high pairs turn too fast", frequency},
      {"position_exponent_shifted", position, kRotation, exponent_shifted, "pairs are counted from 1, not from 0",
       "every pair turns too slowly", frequency},
      {"position_frequencies_reversed", position, kRotation, frequencies_reversed, "the fastest pair stands last",
       "pairs turn in the wrong order", frequency},
      {"position_on_values", position, kRotation | kValues, on_values_too, "values are rotated too",
       "the weights are right, the output turns with the key", "Rotate q and k only.", has_room_in_values},
  };
}

}  // namespace heedful::diagnosis
