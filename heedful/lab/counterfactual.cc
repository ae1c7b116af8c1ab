#include "heedful/lab/counterfactual.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heedful/decoder/self_attention.h"
#include "heedful/inspection/attention_map.h"

namespace heedful {
namespace {

constexpr int kStarts = 64;
constexpr double kZero = 1e-9;  // a direction shorter than this share of its start is rounding

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// An orthonormal basis of the constraints' rows (all ones, and each column of v), restricted to the free keys.
std::vector<Vector> constraint_basis(View<const double, 2> v, const std::vector<bool>& free) {
  std::vector<Vector> basis;
  for (Index e = -1; e < v.extent(1); ++e) {
    Vector row(free.size());
    for (std::size_t j = 0; j < row.size(); ++j) {
      if (free[j]) row[j] = e < 0 ? 1 : v(static_cast<Index>(j), e);
    }
    const double start = std::sqrt(dot(row, row));
    for (int pass = 0; pass < 2; ++pass) {  // twice is enough (Kahan, Parlett)
      for (const Vector& other : basis) {
        const double along = dot(row, other);
        for (std::size_t j = 0; j < row.size(); ++j) row[j] -= along * other[j];
      }
    }
    const double length = std::sqrt(dot(row, row));
    if (!(length > kZero * start)) continue;
    for (double& x : row) x /= length;
    basis.push_back(std::move(row));
  }
  return basis;
}

// A random direction that moves free keys alone and keeps every constraint; empty where there is none.
Vector allowed_direction(View<const double, 2> v, const std::vector<bool>& free, Random& random) {
  const std::vector<Vector> basis = constraint_basis(v, free);
  Vector direction(free.size());
  for (std::size_t j = 0; j < free.size(); ++j) direction[j] = free[j] ? random.normal() : 0;
  const double start = std::sqrt(dot(direction, direction));
  for (int pass = 0; pass < 2; ++pass) {
    for (const Vector& other : basis) {
      const double along = dot(direction, other);
      for (std::size_t j = 0; j < direction.size(); ++j) direction[j] -= along * other[j];
    }
  }
  if (static_cast<std::size_t>(std::ranges::count(free, true)) <= basis.size() ||
      !(std::sqrt(dot(direction, direction)) > kZero * start)) {
    return {};
  }
  return direction;
}

// Along `direction` until the first free key reaches 0, which is then no longer free.
void walk(Vector& p, const Vector& direction, std::vector<bool>& free) {
  double step = std::numeric_limits<double>::infinity();
  std::size_t first = 0;
  for (std::size_t j = 0; j < p.size(); ++j) {
    if (!free[j] || direction[j] >= 0 || -p[j] / direction[j] >= step) continue;
    step = -p[j] / direction[j];
    first = j;
  }
  for (std::size_t j = 0; j < p.size(); ++j) p[j] = std::max(0.0, p[j] + step * direction[j]);
  p[first] = 0;
  free[first] = false;
}

double distance(View<const double, 1> p, const Vector& other) {
  double sum = 0;
  for (std::size_t j = 0; j < other.size(); ++j) sum += std::abs(other[j] - p[static_cast<Index>(j)]) / 2;
  return sum;
}

}  // namespace

std::vector<double> furthest_row(View<const double, 1> p, View<const double, 2> v, Random& random) {
  const auto n = static_cast<std::size_t>(p.extent(0));
  Vector original(n);
  for (std::size_t j = 0; j < n; ++j) original[j] = p[static_cast<Index>(j)];
  Vector furthest = original;
  for (int start = 0; start < kStarts; ++start) {
    Vector row = original;
    std::vector<bool> free(n, true);
    for (Vector direction = allowed_direction(v, free, random); !direction.empty();
         direction = allowed_direction(v, free, random)) {
      walk(row, direction, free);
    }
    if (distance(p, row) > distance(p, furthest)) furthest = row;
  }
  return furthest;
}

std::vector<Alternative> furthest_alternatives(const Context& context, const Decoder<double>& decoder,
                                               View<const Index, 2> tokens, Index begin) {
  const DecoderConfig& config = decoder.config;
  const auto maps = attention_maps<double>(context, decoder, tokens);
  Activations<double> activations;
  decoder_forward<double>(context, activations, decoder, tokens);
  Random random(0);
  std::vector<Alternative> alternatives;
  for (Index l = 0; l < config.layers; ++l) {
    const auto at = static_cast<std::size_t>(l);
    const View<double, 4> values = split_heads(activations.blocks[at].v.view(), 1, config.kv_heads);  // [1, G, T, D]
    for (Index h = 0; h < config.heads; ++h) {
      Alternative found;
      const View<const double, 2> v = values[0][h * config.kv_heads / config.heads];
      for (Index i = begin; i < tokens.extent(1); ++i) {
        const auto p = maps[at].view()[0][h][i].slice(0, 0, i + 1);
        const Vector other = furthest_row(p, v.slice(0, 0, i + 1), random);
        found.distance = std::max(found.distance, distance(p, other));
        for (Index e = 0; e < v.extent(1); ++e) {
          double change = 0;
          for (Index j = 0; j <= i; ++j) change += (other[static_cast<std::size_t>(j)] - p[j]) * v(j, e);
          found.output_change = std::max(found.output_change, std::abs(change));
        }
      }
      alternatives.push_back(found);
    }
  }
  return alternatives;
}

}  // namespace heedful
