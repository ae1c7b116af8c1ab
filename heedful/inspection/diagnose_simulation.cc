#include "heedful/inspection/diagnose_simulation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heedful/inspection/diagnose_error_model.h"
#include "heedful/inspection/diagnose_gradients.h"

namespace heedful::diagnosis {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Index position(const Walk& w, Index b, Index i) {
  const DeclaredAttention& declared = w.given.declared;
  switch (declared.alignment) {
    case Alignment::bottom_right:
      return i + w.Tk - w.Tq;
    case Alignment::offsets:
      return i + declared.query_offsets[static_cast<std::size_t>(b)];
    default:
      return i;
  }
}

bool in_time(const DeclaredAttention& declared, Index position, Index j) {
  return !declared.causal || j <= position;
}

bool in_window(const DeclaredAttention& declared, Index position, Index j) {
  return declared.window == 0 || std::abs(position - j) < declared.window;
}

bool causal(const Walk& w, Index b, Index, Index i, Index j) {
  return in_time(w.given.declared, w.recipe.position(w, b, i), j);
}

bool window(const Walk& w, Index b, Index, Index i, Index j) {
  return in_window(w.given.declared, w.recipe.position(w, b, i), j);
}

bool padding(const Walk& w, Index b, Index, Index, Index j) {
  const DeclaredAttention& declared = w.given.declared;
  if (declared.key_lengths.empty()) return true;
  const Index length = declared.key_lengths[static_cast<std::size_t>(b)];
  return declared.left_padded ? j >= w.Tk - length : j < length;
}

// A shared axis of extent 1 holds the same for all.
template <class T>
T shared(const Tensor<T, 4>& x, Index b, Index h, Index i, Index j) {
  return x(x.extent(0) == 1 ? 0 : b, x.extent(1) == 1 ? 0 : h, i, j);
}

bool keep(const Walk& w, Index b, Index h, Index i, Index j) {
  return (!is_given(w.given.keep) || shared(w.given.keep, b, h, i, j)) &&
         (!is_given(w.given.bias) || w.bias(b, h, i, j) != -kInfinity);
}

bool documents(const Walk& w, Index b, Index, Index i, Index j) {
  const DeclaredAttention& declared = w.given.declared;
  if (declared.query_documents.empty()) return true;
  return declared.query_documents[static_cast<std::size_t>(b * w.Tq + i)] ==
         declared.key_documents[static_cast<std::size_t>(b * w.Tk + j)];
}

bool sees(const Walk& w, Index b, Index h, Index i, Index j) {
  const Recipe& r = w.recipe;
  return r.causal(w, b, h, i, j) && r.window(w, b, h, i, j) && r.padding(w, b, h, i, j) && r.keep(w, b, h, i, j) &&
         r.documents(w, b, h, i, j);
}

double frequency(const Walk& w, Index m) {
  return std::pow(w.given.declared.rotary->base,
                  -2.0 * static_cast<double>(m) / static_cast<double>(w.given.rotary_width()));
}

void load(Walk& w) {
  w.q = w.given.q.copy();
  w.k = w.given.k.copy();
  w.v = w.given.v.copy();
}

void rotate(Walk& w) {
  if (!w.given.declared.rotary) return;
  turn(w, w.q, w.recipe.query_rotation, 1);
  turn(w, w.k, w.recipe.key_rotation, 1);
}

void score(Walk& w) {
  const double scale = w.recipe.scale(w);
  for (Index b = 0; b < w.B; ++b) {
    for (Index h = 0; h < w.H; ++h) {
      const Index g = w.recipe.key_head(w, h);
      for (Index i = 0; i < w.Tq; ++i) {
        for (Index j = 0; j < w.Tk; ++j) {
          const double* query = &w.q(b, h, i, 0);
          const double* key = &w.k(b, g, j, 0);
          double sum = 0;
          for (Index d = 0; d < w.D; ++d) sum += query[d] * key[d];
          w.scores(b, h, i, j) = scale * sum;
          w.score_error(b, h, i, j) = std::abs(scale) * dot_error(w, query, key, b, i, j);
        }
      }
    }
  }
}

void cap(Walk& w) {
  const double softcap = w.given.declared.softcap;
  if (softcap > 0) {
    for (double& s : w.scores) s = softcap * std::tanh(s / softcap);
  }
  w.capped = w.scores.copy();
}

void add_bias(Walk& w) {
  if (!is_given(w.given.bias)) return;
  for (Index b = 0; b < w.B; ++b) {
    for (Index h = 0; h < w.H; ++h) {
      for (Index i = 0; i < w.Tq; ++i) {
        for (Index j = 0; j < w.Tk; ++j) w.scores(b, h, i, j) += w.bias(b, h, i, j);
      }
    }
  }
}

void look(Walk& w) {
  for (Index b = 0; b < w.B; ++b) {
    for (Index h = 0; h < w.H; ++h) {
      for (Index i = 0; i < w.Tq; ++i) {
        for (Index j = 0; j < w.Tk; ++j) w.visible(b, h, i, j) = w.recipe.sees(w, b, h, i, j);
      }
    }
  }
}

void hide(Walk& w) {
  for (Index at = 0; at < w.visible.size(); ++at) w.excluded.data()[at] = !w.visible.data()[at];
}

void normalize(Walk& w) {
  for (Index b = 0; b < w.B; ++b) {
    for (Index h = 0; h < w.H; ++h) {
      for (Index i = 0; i < w.Tq; ++i) {
        double largest = -kInfinity, sum = 0;
        bool empty = true;
        for (Index j = 0; j < w.Tk; ++j) {
          if (w.excluded(b, h, i, j)) continue;
          largest = std::max(largest, w.scores(b, h, i, j));
          empty = empty && w.scores(b, h, i, j) == -kInfinity;
        }
        if (empty) {
          w.fill_empty_row(b, h, i);
          continue;
        }
        for (Index j = 0; j < w.Tk; ++j) {
          w.weights(b, h, i, j) = w.excluded(b, h, i, j) ? 0 : std::exp(w.scores(b, h, i, j) - largest);
          sum += w.weights(b, h, i, j);
        }
        for (Index j = 0; j < w.Tk; ++j) w.weights(b, h, i, j) /= sum;
        w.lse(b, h, i) = largest + std::log(sum);
      }
    }
  }
}

void mix(Walk& w) {
  for (Index b = 0; b < w.B; ++b) {
    for (Index h = 0; h < w.H; ++h) {
      const Index g = w.recipe.value_head(w, h);
      for (Index i = 0; i < w.Tq; ++i) {
        for (Index j = 0; j < w.Tk; ++j) {
          if (w.excluded(b, h, i, j)) continue;
          for (Index e = 0; e < w.E; ++e) w.out(b, h, i, e) += w.weights(b, h, i, j) * w.v(b, g, j, e);
        }
      }
    }
  }
}

}  // namespace

void turn(const Walk& w, Tensor<double, 4>& x, const Place& place, double direction) {
  const bool interleaved = w.recipe.layout(w) == RotaryLayout::interleaved;
  const Index pairs = w.given.rotary_width() / 2;
  for (Index m = 0; m < pairs; ++m) {
    const Index first = interleaved ? 2 * m : m, second = interleaved ? 2 * m + 1 : m + pairs;
    const double frequency = w.recipe.frequency(w, m);
    for (Index b = 0; b < x.extent(0); ++b) {
      for (Index t = 0; t < x.extent(2); ++t) {
        const double angle = direction * static_cast<double>(place(w, b, t)) * frequency;
        const double cosine = std::cos(angle), sine = std::sin(angle);
        for (Index h = 0; h < x.extent(1); ++h) {
          const double a = x(b, h, t, first), c = x(b, h, t, second);
          x(b, h, t, first) = a * cosine - c * sine;
          x(b, h, t, second) = a * sine + c * cosine;
        }
      }
    }
  }
}

Recipe correct_recipe(const DeclaredAttention& declared) {
  Recipe r;
  r.scale = [](const Walk& w) { return w.given.declared.scale.value_or(1 / std::sqrt(static_cast<double>(w.D))); };
  r.key_head = r.value_head = [](const Walk& w, Index h) { return h / (w.H / w.G); };
  r.position = position;
  r.causal = causal;
  r.window = window;
  r.padding = padding;
  r.keep = keep;
  r.documents = documents;
  r.sees = sees;
  r.query_rotation = [](const Walk& w, Index b, Index i) {
    return w.given.declared.query_positions[static_cast<std::size_t>(b * w.Tq + i)];
  };
  r.key_rotation = [](const Walk& w, Index b, Index j) {
    return w.given.declared.key_positions[static_cast<std::size_t>(b * w.Tk + j)];
  };
  r.frequency = frequency;
  r.layout = [](const Walk& w) { return w.given.declared.rotary->layout; };
  r.declared_empty_row = declared.empty_row;
  r.load = load;
  r.rotate = rotate;
  r.score = score;
  r.cap = cap;
  r.add_bias = add_bias;
  r.look = look;
  r.hide = hide;
  r.normalize = normalize;
  r.mix = mix;
  r.merge = [](const Walk&, Tensor<double, 4>&) {};
  r.backward = correct_gradient_recipe();
  return r;
}

Walk::Walk(const AttentionCase& attention_case, const Recipe& steps)
    : given(attention_case),
      recipe(steps),
      type(rounding_of(given.declared.type)),
      B(given.B()),
      H(given.H()),
      G(given.G()),
      Tq(given.Tq()),
      Tk(given.Tk()),
      D(given.D()),
      E(given.E()),
      scores({B, H, Tq, Tk}),
      score_error({B, H, Tq, Tk}),
      visible({B, H, Tq, Tk}),
      excluded({B, H, Tq, Tk}),
      weights({B, H, Tq, Tk}),
      weight_error({B, H, Tq, Tk}),
      lse({B, H, Tq}),
      lse_error({B, H, Tq}),
      out({B, H, Tq, E}),
      out_error({B, H, Tq, E}) {}

double Walk::bias(Index b, Index h, Index i, Index j) const {
  return shared(given.bias, b, h, i, j);
}

bool Walk::is_meant_to_see(Index b, Index h, Index i, Index j) const {
  const Index place = diagnosis::position(*this, b, i);
  return in_time(given.declared, place, j) && in_window(given.declared, place, j) &&
         diagnosis::padding(*this, b, h, i, j) && diagnosis::keep(*this, b, h, i, j) &&
         diagnosis::documents(*this, b, h, i, j);
}

void Walk::fill_empty_row(Index b, Index h, Index i) {
  bool meant = true;
  for (Index j = 0; j < Tk; ++j) meant = meant && !is_meant_to_see(b, h, i, j);
  empty_by_mistake = empty_by_mistake || !meant;
  lse(b, h, i) = -kInfinity;
  const EmptyRowValue value = meant ? recipe.declared_empty_row : recipe.other_empty_row;
  if (value == EmptyRowValue::zero) return;
  for (Index j = 0; j < Tk; ++j) {
    excluded(b, h, i, j) = false;
    weights(b, h, i, j) =
        value == EmptyRowValue::nan ? std::numeric_limits<double>::quiet_NaN() : 1 / static_cast<double>(Tk);
  }
}

Walk walk(const AttentionCase& given, const Recipe& recipe) {
  Walk w(given, recipe);
  for (const Stage* stage : {&recipe.load, &recipe.rotate, &recipe.score, &recipe.cap, &recipe.add_bias, &recipe.look,
                             &recipe.hide, &recipe.normalize, &recipe.mix}) {
    (*stage)(w);
  }
  predict_errors(w);
  recipe.merge(w, w.out);
  recipe.merge(w, w.out_error);
  return w;
}

}  // namespace heedful::diagnosis
