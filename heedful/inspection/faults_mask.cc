// A hidden key is left out of the softmax: neither its score nor its value is read. Anything that only weakens it
// shows in the row sums, in large hidden scores, or in NaN behind the mask.
#include <cmath>
#include <limits>

#include "heedful/inspection/faults.h"

namespace heedful::diagnosis {
namespace {

void nothing(Walk&) {}

// Calls change(score, is_visible) for every score, then hides nothing.
template <class Change>
void instead_of_hiding(Recipe& r, const Change& change) {
  r.hide = [change](Walk& w) {
    for (Index at = 0; at < w.scores.size(); ++at) change(w.scores.data()[at], w.visible.data()[at]);
  };
}

void after_softmax(Recipe& r) {
  r.hide = nothing;
  r.normalize = [softmax = r.normalize](Walk& w) {
    softmax(w);
    for (Index at = 0; at < w.weights.size(); ++at) w.weights.data()[at] *= w.visible.data()[at] ? 1 : 0;
  };
}

// The same algebra as excluding, but exp() of a visible score underflows where a hidden one is much larger.
void renormalized(Recipe& r) {
  r.hide = nothing;
  r.normalize = [softmax = r.normalize](Walk& w) {
    softmax(w);
    const double smallest = std::ldexp(w.type.unit, w.type.accumulator_unit > 0x1p-30 ? -126 : -1022);
    for (Index row = 0; row < w.lse.size(); ++row) {
      double* weights = w.weights.data() + row * w.Tk;
      const bool* visible = w.visible.data() + row * w.Tk;
      double sum = 0;
      for (Index j = 0; j < w.Tk; ++j) {
        if (!visible[j] || weights[j] < smallest) weights[j] = 0;
        sum += weights[j];
      }
      for (Index j = 0; j < w.Tk; ++j) weights[j] /= sum;
    }
  };
}

void multiplied(Recipe& r) {
  instead_of_hiding(r, [](double& score, bool visible) { score *= visible ? 1 : 0; });
}

template <int kPenalty>
void penalty_added(Recipe& r) {
  instead_of_hiding(r, [](double& score, bool visible) { score -= visible ? 0 : kPenalty; });
}

template <int kPenalty>
void penalty_put(Recipe& r) {
  instead_of_hiding(r, [](double& score, bool visible) { score = visible ? score : -kPenalty; });
}

void boolean_added(Recipe& r) {
  instead_of_hiding(r, [](double& score, bool visible) { score += visible ? 1 : 0; });
}

void inverted(Recipe& r) {
  r.sees = [right = r.sees](const Walk& w, Index b, Index h, Index i, Index j) { return !right(w, b, h, i, j); };
}

void joined_by_or(Recipe& r) {
  r.sees = [](const Walk& w, Index b, Index h, Index i, Index j) {
    const DeclaredAttention& declared = w.given.declared;
    const bool has_order = declared.causal || declared.window > 0;
    const bool order = w.recipe.causal(w, b, h, i, j) && w.recipe.window(w, b, h, i, j);
    const bool content =
        w.recipe.padding(w, b, h, i, j) && w.recipe.keep(w, b, h, i, j) && w.recipe.documents(w, b, h, i, j);
    const bool has_content =
        !declared.key_lengths.empty() || is_given(w.given.keep) || !declared.query_documents.empty();
    return has_order && has_content ? order || content : order && content;
  };
}

// The Tq × Tk mask read as if it were stored Tk × Tq.
void transposed(Recipe& r) {
  r.sees = [right = r.sees](const Walk& w, Index b, Index h, Index i, Index j) {
    const Index flat = j * w.Tq + i;
    return right(w, b, h, flat / w.Tk, flat % w.Tk);
  };
}

void hidden_read(Recipe& r) {
  r.mix = [mix = r.mix](Walk& w) {
    w.excluded.fill(false);
    mix(w);
  };
}

void keep_ignored(Recipe& r) {
  r.keep = [](const Walk&, Index, Index, Index, Index) { return true; };
}

void keep_inverted(Recipe& r) {
  r.keep = [right = r.keep](const Walk& w, Index b, Index h, Index i, Index j) {
    return !is_given(w.given.keep) ? right(w, b, h, i, j) : !right(w, b, h, i, j);
  };
}

void keep_of_first_head(Recipe& r) {
  r.keep = [right = r.keep](const Walk& w, Index b, Index, Index i, Index j) { return right(w, b, 0, i, j); };
}

void keep_of_first_sequence(Recipe& r) {
  r.keep = [right = r.keep](const Walk& w, Index, Index h, Index i, Index j) { return right(w, 0, h, i, j); };
}

void documents_ignored(Recipe& r) {
  r.documents = [](const Walk&, Index, Index, Index, Index) { return true; };
}

void softcap_after_mask(Recipe& r) {
  r.cap = [](Walk& w) { w.capped = w.scores.copy(); };
  r.hide = [](Walk& w) {
    const double softcap = w.given.declared.softcap;
    for (Index at = 0; at < w.scores.size(); ++at) {
      double& score = w.scores.data()[at];
      if (softcap > 0) score = w.visible.data()[at] ? softcap * std::tanh(score / softcap) : -softcap;
      w.excluded.data()[at] = softcap <= 0 && !w.visible.data()[at];
    }
  };
}

// The bias comes last, so that it is neither capped nor masked.
void softcap_between_mask_and_bias(Recipe& r) {
  r.hide = [](Walk& w) {
    const double softcap = w.given.declared.softcap;
    for (Index b = 0; b < w.B; ++b) {
      for (Index h = 0; h < w.H; ++h) {
        for (Index i = 0; i < w.Tq; ++i) {
          for (Index j = 0; j < w.Tk; ++j) {
            w.excluded(b, h, i, j) = softcap <= 0 && !w.visible(b, h, i, j);
            if (softcap <= 0 || w.visible(b, h, i, j)) continue;
            w.scores(b, h, i, j) = (is_given(w.given.bias) ? w.bias(b, h, i, j) : 0) - softcap;
          }
        }
      }
    }
  };
}

void softcap_ignored(Recipe& r) {
  r.cap = [](Walk& w) { w.capped = w.scores.copy(); };
}

void softcap_after_bias(Recipe& r) {
  std::swap(r.cap, r.add_bias);
}

void softcap_without_return(Recipe& r) {
  r.cap = [cap = r.cap](Walk& w) {
    cap(w);
    if (w.given.declared.softcap > 0) {
      for (double& score : w.scores) score /= w.given.declared.softcap;
    }
  };
}

void bias_ignored(Recipe& r) {
  r.add_bias = nothing;
}

// Scores and bias are scaled together.
void bias_scaled(Recipe& r) {
  r.add_bias = [add = r.add_bias](Walk& w) {
    const Tensor<double, 4> before = w.scores.copy();
    add(w);
    const double scale = w.recipe.scale(w);
    for (Index at = 0; at < w.scores.size(); ++at) {
      w.scores.data()[at] = before.data()[at] + scale * (w.scores.data()[at] - before.data()[at]);
    }
  };
}

void bias_negated(Recipe& r) {
  r.add_bias = [add = r.add_bias](Walk& w) {
    const Tensor<double, 4> before = w.scores.copy();
    add(w);
    for (Index at = 0; at < w.scores.size(); ++at) w.scores.data()[at] = 2 * before.data()[at] - w.scores.data()[at];
  };
}

}  // namespace

std::vector<Fault> mask_faults() {
  using enum Group;
  const std::string_view exclude = "Exclude hidden keys: give them −∞, or skip them, before the softmax.";
  return {
      {"mask_after_softmax", mask, kHide | kNormalize, after_softmax,
       "hidden weights are set to 0 after the softmax, which counted them", "rows sum to less than 1", exclude},
      {"mask_renormalized", mask, kHide | kNormalize, renormalized,
       "softmax over all keys, then mask, then divide by the sum left",
       "NaN where a hidden score is much the largest", exclude},
      {"mask_multiplied", mask, kHide, multiplied, "hidden scores become 0: the scores were multiplied by the mask",
       "hidden keys take weight, whatever they hold", exclude},
      {"mask_adds_10", mask, kHide, penalty_added<10>, "10 is subtracted from hidden scores",
       "hidden keys keep e^−10 of their weight", exclude},
      {"mask_adds_1e4", mask, kHide, penalty_added<10'000>, "1e4 is subtracted from hidden scores",
       "shows where a hidden score is 1e4 above the visible ones", exclude},
      {"mask_adds_1e5", mask, kHide, penalty_added<100'000>, "1e5 is subtracted from hidden scores",
       "shows where a hidden score is 1e5 above the visible ones", exclude},
      {"mask_puts_10", mask, kHide, penalty_put<10>, "hidden scores are set to −10",
       "shows where visible scores are low", exclude},
      {"mask_puts_1e4", mask, kHide, penalty_put<10'000>, "hidden scores are set to −1e4",
       "shows where every visible score is below −1e4", exclude},
      {"mask_puts_1e5", mask, kHide, penalty_put<100'000>, "hidden scores are set to −1e5",
       "shows where every visible score is below −1e5", exclude},
      {"mask_boolean_added", mask, kHide, boolean_added, "the boolean mask is added to the scores as 0 and 1",
       "hidden keys weigh only e times less", exclude},
      {"mask_inverted", mask, kCausal | kWindow | kPadding | kKeep | kDocuments, inverted,
       "true and false of the mask are exchanged", "a row looks at exactly what it must not",
       "Say what true means at the border: here true = may look."},
      {"mask_or", mask, kCausal | kWindow | kPadding | kKeep | kDocuments, joined_by_or,
       "order (causal, window) and content (padding, mask) are joined by OR", "hidden only where both hide",
       "Join all masks by AND."},
      {"mask_transposed", mask, kCausal | kWindow | kPadding | kKeep | kDocuments, transposed,
       "the mask is read with queries and keys exchanged", "with Tq = Tk, a mirrored support",
       "Index the mask as [query, key]."},
      {"mask_hidden_read", mask, kMix, hidden_read, "hidden values are multiplied by 0 instead of skipped",
       "NaN behind the mask reaches the output", "Skip hidden keys, or clean the padding."},
      {"mask_keep_ignored", mask, kKeep, keep_ignored, "the mask given by the caller is not applied", "full support",
       "Apply the mask that was passed in."},
      {"mask_keep_inverted", mask, kKeep, keep_inverted, "the caller's mask is taken for true = hide",
       "looks where the mask says no", "Here true = may look; convert at the border."},
      {"mask_keep_of_first_head", mask, kKeep, keep_of_first_head, "every head uses the mask of head 0",
       "head 0 is right", "Index the mask by head."},
      {"mask_keep_of_first_sequence", mask, kKeep, keep_of_first_sequence,
       "every sequence uses the mask of sequence 0", "batch 0 is right", "Index the mask by batch."},
      {"mask_documents_ignored", mask, kDocuments, documents_ignored, "packed documents attend to each other",
       "the first document is right", "Hide keys of another document."},
      {"softcap_after_mask", mask, kCap | kBias | kHide,
       std::vector<Variant>{{"", softcap_after_mask}, {"the bias last", softcap_between_mask_and_bias}},
       "the softcap comes after the mask and lifts −∞ to −softcap", "hidden keys keep weight",
       "Cap first, then mask."},
      {"softcap_ignored", mask, kCap, softcap_ignored, "no softcap is applied", "large scores are too large",
       "Apply softcap · tanh(s / softcap)."},
      {"softcap_after_bias", mask, kCap | kBias, softcap_after_bias, "the bias is capped together with the scores",
       "right where there is no bias", "Cap first, then add the bias."},
      {"softcap_without_return", mask, kCap, softcap_without_return, "tanh(s / softcap) is not multiplied by softcap",
       "weights nearly even", "Multiply tanh(s / softcap) by softcap."},
      {"bias_ignored", mask, kBias, bias_ignored, "the additive bias is not added", "right where the bias is even",
       "Add the bias to the scaled scores."},
      {"bias_scaled", mask, kBias, bias_scaled, "the bias is added before the scale and shrunk by it",
       "the bias acts √D times too weakly", "Scale first, then add the bias."},
      {"bias_negated", mask, kBias, bias_negated, "the bias is subtracted",
       "far keys weigh more where near ones should", "Add the bias."},
  };
}

}  // namespace heedful::diagnosis
