// A key-value cache holds what was computed before: the same slots, in the same order, of the same sequence. Cached
// and recomputed must agree bit for bit.
#include <algorithm>
#include <limits>

#include "heedful/inspection/faults.h"

namespace heedful::diagnosis {
namespace {

// Replaces the slots of x [B, G, Tk, …]: new slot j holds old slot source(j); a negative one holds zeros.
template <class Source>
void move_slots(const Walk& w, Tensor<double, 4>& x, const Source& source) {
  const Tensor<double, 4> old = x.copy();
  const Index width = x.extent(3);
  for (Index b = 0; b < w.B; ++b) {
    for (Index g = 0; g < w.G; ++g) {
      for (Index j = 0; j < w.Tk; ++j) {
        const Index from = source(j);
        if (from < 0) std::fill_n(&x(b, g, j, 0), width, 0.0);
        if (from >= 0) std::copy_n(&old(b, g, from, 0), width, &x(b, g, j, 0));
      }
    }
  }
}

// `change` works on k and v after they were rotated, as a cache holds them.
template <class Change>
void in_cache(Recipe& r, const Change& change) {
  r.rotate = [rotate = r.rotate, change](Walk& w) {
    rotate(w);
    change(w);
  };
}

Index one_behind(Index j) {
  return std::max<Index>(j - 1, 0);
}

void values_behind(Recipe& r) {
  in_cache(r, [](Walk& w) { move_slots(w, w.v, one_behind); });
}

void keys_behind(Recipe& r) {
  in_cache(r, [](Walk& w) { move_slots(w, w.k, one_behind); });
}

void values_ahead(Recipe& r) {
  in_cache(r, [](Walk& w) { move_slots(w, w.v, [&](Index j) { return std::min(j + 1, w.Tk - 1); }); });
}

bool has_equal_widths(const AttentionCase& given) {
  return given.D() == given.E();
}

void keys_as_values(Recipe& r) {
  in_cache(r, [](Walk& w) { w.v = w.k.copy(); });
}

void values_as_keys(Recipe& r) {
  in_cache(r, [](Walk& w) { w.k = w.v.copy(); });
}

void last_two_swapped(Recipe& r) {
  in_cache(r, [](Walk& w) {
    const auto swapped = [&](Index j) { return w.Tk >= 2 && j >= w.Tk - 2 ? 2 * w.Tk - 3 - j : j; };
    move_slots(w, w.k, swapped);
    move_slots(w, w.v, swapped);
  });
}

// The offset has already moved past the new tokens when their positions are taken from it.
void offset_advanced(Recipe& r) {
  r.position = [right = r.position](const Walk& w, Index b, Index i) { return right(w, b, i) + w.Tq; };
  r.query_rotation = [right = r.query_rotation](const Walk& w, Index b, Index i) { return right(w, b, i) + w.Tq; };
}

// New keys were written from slot 0 on, over the oldest, and the ring is read as if it started there.
void ring_unrolled(Recipe& r) {
  in_cache(r, [](Walk& w) {
    const auto rolled = [&](Index j) { return (j + w.Tk - w.Tq % w.Tk) % w.Tk; };
    move_slots(w, w.k, rolled);
    move_slots(w, w.v, rolled);
  });
}

void reversed(Recipe& r) {
  in_cache(r, [](Walk& w) {
    const auto backwards = [&](Index j) { return w.Tk - 1 - j; };
    move_slots(w, w.k, backwards);
    move_slots(w, w.v, backwards);
  });
}

void other_sequence(Recipe& r) {
  in_cache(r, [](Walk& w) {
    for (Tensor<double, 4>* x : {&w.k, &w.v}) {
      const Index size = x->size() / std::max<Index>(w.B, 1);
      std::rotate(x->begin(), x->begin() + (w.B > 1 ? size : 0), x->end());
    }
  });
}

void first_sequence(Recipe& r) {
  in_cache(r, [](Walk& w) {
    for (Tensor<double, 4>* x : {&w.k, &w.v}) {
      const Index size = x->size() / std::max<Index>(w.B, 1);
      for (Index b = 1; b < w.B; ++b) std::copy_n(x->data(), size, x->data() + b * size);
    }
  });
}

template <class Lost>
void lose(Recipe& r, const Lost& lost) {
  r.keep = [right = r.keep, lost](const Walk& w, Index b, Index h, Index i, Index j) {
    return right(w, b, h, i, j) && !lost(w, j);
  };
}

void newest_missing(Recipe& r) {
  lose(r, [](const Walk& w, Index j) { return j == w.Tk - 1; });
}

void new_block_missing(Recipe& r) {
  lose(r, [](const Walk& w, Index j) { return w.Tq < w.Tk && j >= w.Tk - w.Tq; });
}

void oldest_missing(Recipe& r) {
  lose(r, [](const Walk&, Index j) { return j == 0; });
}

void past_ignored(Recipe& r) {
  lose(r, [](const Walk& w, Index j) { return j < w.Tk - w.Tq; });
}

// The new slots were never written and still hold zeros.
void new_values_unwritten(Recipe& r) {
  in_cache(r, [](Walk& w) { move_slots(w, w.v, [&](Index j) { return w.Tq < w.Tk && j >= w.Tk - w.Tq ? -1 : j; }); });
}

}  // namespace

std::vector<Fault> cache_faults() {
  using enum Group;
  const std::string_view same_step = "Append the key and the value of a token in the same step, to the same slot.";
  return {
      {"cache_values_behind", cache, kValues, values_behind, "values lag one slot behind their keys",
       "row 0 is right where it sees key 0 only", same_step},
      {"cache_keys_behind", cache, kKeys, keys_behind, "keys lag one slot behind their values",
       "weights shifted by one key", same_step},
      {"cache_values_ahead", cache, kValues, values_ahead, "values run one slot ahead of their keys",
       "each weight falls on the next value", same_step},
      {"cache_keys_as_values", cache, kValues, keys_as_values, "the keys are read in place of the values",
       "the output lies in the span of the keys", "Read values from the value cache.", has_equal_widths},
      {"cache_values_as_keys", cache, kKeys, values_as_keys, "the values are read in place of the keys",
       "weights do not react to the keys", "Read keys from the key cache.", has_equal_widths},
      {"cache_slots_swapped", cache, kKeys | kValues, last_two_swapped, "the two newest slots are exchanged",
       "only rows that see one of the two are wrong", "Write each token to slot = its position."},
      {"cache_offset_advanced", cache, kPosition | kRotation, offset_advanced,
       "the offset has moved past the new tokens before their positions are taken",
       "queries see Tq keys of the future", "Take positions first, then advance the offset."},
      {"cache_ring_unrolled", cache, kKeys | kValues, ring_unrolled,
       "a ring is read from slot 0 instead of its oldest slot", "the newest keys stand first",
       "Read the ring from its start, or carry each slot's position."},
      {"cache_reversed", cache, kKeys | kValues, reversed, "slots are read newest first", "mirrored support",
       "Read slots in order of position."},
      {"cache_other_sequence", cache, kKeys | kValues, other_sequence, "sequence b reads the slots of sequence b + 1",
       "outputs answer to another prompt", "Index the cache by sequence."},
      {"cache_first_sequence", cache, kKeys | kValues, first_sequence, "every sequence reads the slots of sequence 0",
       "batch 0 is right", "Index the cache by sequence."},
      {"cache_newest_missing", cache, kKeep, newest_missing, "attention runs before the newest key is appended",
       "the last query cannot see itself", "Append first, then attend."},
      {"cache_new_block_missing", cache, kKeep, new_block_missing, "the new keys are not in the cache yet",
       "queries see the past only", "Append first, then attend."},
      {"cache_oldest_missing", cache, kKeep, oldest_missing, "slot 0 was overwritten or skipped",
       "row 0 of a prompt is empty or wrong", "Start at slot 0, drop it only when the window leaves it."},
      {"cache_past_ignored", cache, kKeep, past_ignored, "only the new keys are read, not the cached ones",
       "a single query sees itself only", "Attend over cache and new keys."},
      {"cache_new_values_unwritten", cache, kValues, new_values_unwritten, "the new value slots still hold zeros",
       "the output shrinks", same_step},
  };
}

}  // namespace heedful::diagnosis
