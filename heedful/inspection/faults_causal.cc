// Who may look at whom by time: key j is seen by the queries that stand at j or later, and inside the window. What
// gives each away is the first row that reacts to key j.
#include <cmath>

#include "heedful/inspection/faults.h"

namespace heedful::diagnosis {
namespace {

bool everything(const Walk&, Index, Index, Index, Index) {
  return true;
}

// j ≤ p(i) + ahead, where causality was asked for.
template <int kAhead>
void limit_moved(Recipe& r) {
  r.causal = [](const Walk& w, Index b, Index, Index i, Index j) {
    return !w.given.declared.causal || j <= w.recipe.position(w, b, i) + kAhead;
  };
}

void missing(Recipe& r) {
  r.causal = everything;
}

void reversed(Recipe& r) {
  r.causal = [](const Walk& w, Index b, Index, Index i, Index j) {
    return !w.given.declared.causal || j >= w.recipe.position(w, b, i);
  };
}

void top_left(Recipe& r) {
  r.position = [](const Walk&, Index, Index i) { return i; };
}

void bottom_right(Recipe& r) {
  r.position = [](const Walk& w, Index, Index i) { return i + w.Tk - w.Tq; };
}

// Offsets that the caller gives are used; only the alignment that stands in for them is wrong.
template <void (*kMisalign)(Recipe&)>
void but_offsets(Recipe& r) {
  const auto right = r.position;
  kMisalign(r);
  r.position = [right, wrong = r.position](const Walk& w, Index b, Index i) {
    return w.given.declared.alignment == Alignment::offsets ? right(w, b, i) : wrong(w, b, i);
  };
}

// Where this alignment is what was asked for, using it is no mistake.
template <Alignment kAlignment>
bool is_not_asked_for(const AttentionCase& given) {
  return given.declared.alignment != kAlignment;
}

// With padding: the last query is put on the sequence's last real key.
void aligned_to_length(Recipe& r) {
  r.position = [right = r.position](const Walk& w, Index b, Index i) {
    const std::vector<Index>& lengths = w.given.declared.key_lengths;
    return lengths.empty() ? right(w, b, i) : i + lengths[static_cast<std::size_t>(b)] - w.Tq;
  };
}

void first_sequence_offset(Recipe& r) {
  r.position = [right = r.position](const Walk& w, Index, Index i) { return right(w, 0, i); };
}

void added_unasked(Recipe& r) {
  r.causal = [](const Walk& w, Index b, Index, Index i, Index j) { return j <= w.recipe.position(w, b, i); };
}

// |p − j| < W becomes |p − j| < W + more.
template <int kMore>
void window_moved(Recipe& r) {
  r.window = [](const Walk& w, Index b, Index, Index i, Index j) {
    const Index width = w.given.declared.window;
    return width == 0 || std::abs(w.recipe.position(w, b, i) - j) < width + kMore;
  };
}

void window_ignored(Recipe& r) {
  r.window = everything;
}

void window_in_blocks(Recipe& r) {
  r.window = [](const Walk& w, Index b, Index, Index i, Index j) {
    const Index width = w.given.declared.window;
    return width == 0 || w.recipe.position(w, b, i) / width == j / width;
  };
}

void window_doubled(Recipe& r) {
  r.window = [](const Walk& w, Index b, Index, Index i, Index j) {
    const Index width = w.given.declared.window;
    return width == 0 || std::abs(w.recipe.position(w, b, i) - j) <= 2 * width;
  };
}

void window_from_row(Recipe& r) {
  r.window = [](const Walk& w, Index, Index, Index i, Index j) {
    const Index width = w.given.declared.window;
    return width == 0 || std::abs(i - j) < width;
  };
}

void window_halved(Recipe& r) {
  r.window = [](const Walk& w, Index b, Index, Index i, Index j) {
    const Index width = w.given.declared.window;
    return width == 0 || std::abs(w.recipe.position(w, b, i) - j) <= width / 2;
  };
}

}  // namespace

std::vector<Fault> causal_faults() {
  using enum Group;
  return {
      {"causal_missing", causal, kCausal, missing, "queries see the future", "every row reacts to the last key",
       "Hide keys with j > p(i)."},
      {"causal_strict", causal, kCausal, limit_moved<-1>, "a query cannot see its own key",
       "key j first acts on row j + 1; row 0 is empty", "Use j ≤ p(i), not j < p(i)."},
      {"causal_leaks_one", causal, kCausal, limit_moved<1>, "a query sees one key of the future",
       "key j acts on row j − 1", "Use j ≤ p(i), not j ≤ p(i) + 1."},
      {"causal_reversed", causal, kCausal, reversed, "a query sees the future and not the past",
       "row 0 sees all keys", "Use j ≤ p(i): the lower triangle."},
      {"causal_top_left", causal, kPosition,
       std::vector<Variant>{
           {"", top_left}, {"given offsets are right", but_offsets<top_left>, is_not_asked_for<Alignment::top_left>}},
       "query 0 is put on key 0 though the keys hold a past", "right where Tq = Tk; a single query sees key 0 only",
       "Put query i at i + Tk − Tq, or at its cache offset."},
      {"causal_bottom_right", causal, kPosition,
       std::vector<Variant>{
           {"", bottom_right},
           {"given offsets are right", but_offsets<bottom_right>, is_not_asked_for<Alignment::bottom_right>}},
       "the last query is put on the last key though it is not there", "right where Tq = Tk; early rows see too much",
       "Put query i at position i."},
      {"causal_aligned_to_length", causal, kPosition, aligned_to_length,
       "the last query is put on the last real key of its sequence", "full sequences are right",
       "Take positions from the alignment, not from the key length."},
      {"causal_offset_of_first_sequence", causal, kPosition, first_sequence_offset,
       "every sequence uses the cache offset of sequence 0", "batch 0 is right", "Index the offsets by batch."},
      {"causal_unasked", causal, kCausal, added_unasked, "a causal mask is applied though none was asked for",
       "the last row is right", "Leave the causal mask off, or declare it: causal=top_left or bottom_right."},
  };
}

std::vector<Fault> window_faults() {
  using enum Group;
  const std::string_view count = "W counts the current token: see the keys with p − W < j ≤ p.";
  return {
      {"window_one_wider", window, kWindow, window_moved<1>, "the window holds W + 1 keys",
       "support one key too wide", count},
      {"window_one_narrower", window, kWindow, window_moved<-1>, "the window holds W − 1 keys",
       "support one key too narrow", count},
      {"window_ignored", window, kWindow, window_ignored, "the window is not applied",
       "support reaches back to key 0", "Hide keys with p(i) − j ≥ W."},
      {"window_in_blocks", window, kWindow, window_in_blocks, "keys are cut into blocks of W instead of sliding",
       "support jumps every W rows", "Slide the window with the query."},
      {"window_doubled", window, kWindow, window_doubled, "W is taken on either side, and doubled",
       "support of 2W + 1", count},
      {"window_halved", window, kWindow, window_halved, "the window reaches W/2 to either side",
       "support half as wide", count},
      {"window_from_row", window, kWindow, window_from_row,
       "the window is laid around row i, not around position p(i)", "right where Tq = Tk",
       "Measure the window from p(i)."},
  };
}

}  // namespace heedful::diagnosis
