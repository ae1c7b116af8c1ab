// Keys beyond a sequence's length are padding: hidden from every query, whatever stands next to them in the batch. A
// sequence computed alone and the same sequence in a batch must agree.
#include "heedful/inspection/faults.h"

namespace heedful::diagnosis {
namespace {

Index length(const Walk& w, Index b) {
  const std::vector<Index>& lengths = w.given.declared.key_lengths;
  return lengths.empty() ? w.Tk : lengths[static_cast<std::size_t>(b)];
}

bool hides_padding(const Walk& w) {
  return !w.given.declared.key_lengths.empty();
}

// Key j of a sequence that holds `real` keys, on the side that was declared.
bool is_real(const Walk& w, Index real, Index j) {
  return w.given.declared.left_padded ? j >= w.Tk - real : j < real;
}

void missing(Recipe& r) {
  r.padding = [](const Walk&, Index, Index, Index, Index) { return true; };
}

void as_causal(Recipe& r) {
  r.padding = [](const Walk& w, Index b, Index, Index i, Index j) {
    return !hides_padding(w) || j <= w.recipe.position(w, b, i);
  };
}

void on_queries(Recipe& r) {
  r.padding = [](const Walk& w, Index b, Index, Index i, Index) { return is_real(w, length(w, b), i); };
}

void on_queries_too(Recipe& r) {
  r.padding = [right = r.padding](const Walk& w, Index b, Index h, Index i, Index j) {
    return right(w, b, h, i, j) && is_real(w, length(w, b), i);
  };
}

void first_sequence(Recipe& r) {
  r.padding = [](const Walk& w, Index, Index, Index, Index j) { return is_real(w, length(w, 0), j); };
}

void longest(Recipe& r) {
  r.padding = [](const Walk& w, Index, Index, Index, Index j) {
    Index most = 0;
    for (Index b = 0; b < w.B; ++b) most = std::max(most, length(w, b));
    return is_real(w, most, j);
  };
}

void other_side(Recipe& r) {
  r.padding = [](const Walk& w, Index b, Index, Index, Index j) {
    const Index real = length(w, b);
    return w.given.declared.left_padded ? j < real : j >= w.Tk - real;
  };
}

template <int kMore>
void length_moved(Recipe& r) {
  r.padding = [](const Walk& w, Index b, Index, Index, Index j) {
    return !hides_padding(w) || is_real(w, length(w, b) + kMore, j);
  };
}

// Padded keys are taken for real ones with a score of 0 and a value of 0: only the values were cleaned.
void after_softmax(Recipe& r) {
  r.padding = [](const Walk&, Index, Index, Index, Index) { return true; };
  r.mix = [mix = r.mix, right = correct_recipe({}).padding](Walk& w) {
    for (Index b = 0; b < w.B; ++b) {
      for (Index j = 0; j < w.Tk; ++j) {
        if (right(w, b, 0, 0, j)) continue;
        for (Index h = 0; h < w.H; ++h) {
          for (Index i = 0; i < w.Tq; ++i) w.weights(b, h, i, j) = 0;
        }
      }
    }
    mix(w);
  };
}

void keys_zeroed(Recipe& r) {
  r.padding = [](const Walk&, Index, Index, Index, Index) { return true; };
  r.load = [load = r.load, right = correct_recipe({}).padding](Walk& w) {
    load(w);
    for (Index b = 0; b < w.B; ++b) {
      for (Index g = 0; g < w.G; ++g) {
        for (Index j = 0; j < w.Tk; ++j) {
          if (right(w, b, 0, 0, j)) continue;
          std::fill_n(&w.k(b, g, j, 0), w.D, 0.0);
          std::fill_n(&w.v(b, g, j, 0), w.E, 0.0);
        }
      }
    }
  };
}

}  // namespace

std::vector<Fault> padding_faults() {
  using enum Group;
  const std::string_view hide = "Hide keys at and beyond the length of their own sequence, joined by AND.";
  return {
      {"padding_missing", padding, kPadding, missing, "padded keys take part in the softmax",
       "a sequence alone and in a batch disagree", hide},
      {"padding_as_causal", padding, kPadding, as_causal, "a causal mask stands where the padding mask belongs",
       "right where all lengths are equal and order is causal", hide},
      {"padding_on_queries", padding, kPadding, on_queries, "the padding mask lies on the query axis",
       "rows beyond the length are empty, keys beyond it are seen", "Lay the length mask along the keys."},
      {"padding_on_queries_too", padding, kPadding, on_queries_too, "the key length also hides query rows",
       "rows beyond the key length are empty", "Lay the length mask along the keys only."},
      {"padding_of_first_sequence", padding, kPadding, first_sequence, "every sequence uses the length of sequence 0",
       "batch 0 is right", "Index the lengths by batch."},
      {"padding_of_longest", padding, kPadding, longest, "every sequence uses the longest length",
       "the longest sequence is right", "Index the lengths by batch."},
      {"padding_other_side", padding, kPadding, other_side, "left and right padding are confused",
       "real keys are hidden, as many as there is padding", "Hide the side on which the padding stands."},
      {"padding_one_too_many", padding, kPadding, length_moved<1>, "one padded key is seen",
       "support one key beyond the length", "Use j < length."},
      {"padding_one_too_few", padding, kPadding, length_moved<-1>, "the last real key is hidden",
       "support one key short of the length", "Use j < length."},
      {"padding_after_softmax", padding, kPadding | kMix, after_softmax,
       "padded weights are set to 0 after the softmax", "rows of padded sequences sum to less than 1", hide},
      {"padding_zeroed", padding, kPadding | kKeys | kValues, keys_zeroed,
       "padded keys and values are zeroed and then counted", "the denominator is too large by the padded keys", hide},
  };
}

}  // namespace heedful::diagnosis
