// Heads are axes, not numbers in a row: splitting and merging them must go through the same transpose, and a group of
// query heads shares one key-value head in order. One-hot values per head show every exchange at once.
#include <algorithm>

#include "heedful/inspection/faults.h"

namespace heedful::diagnosis {
namespace {

// Rewrites every sequence's [H, T, E] block: new(h, t, e) = old at the flat place source(h, t, e).
template <class Source>
void rearrange(Tensor<double, 4>& x, const Source& source) {
  const Index H = x.extent(1), T = x.extent(2), E = x.extent(3);
  const Tensor<double, 4> old = x.copy();
  for (Index b = 0; b < x.extent(0); ++b) {
    const double* from = old.data() + b * H * T * E;
    for (Index h = 0; h < H; ++h) {
      for (Index t = 0; t < T; ++t) {
        for (Index e = 0; e < E; ++e) x(b, h, t, e) = from[source(h, t, e)];
      }
    }
  }
}

// The [H, T, E] buffer read as the merged [T, H·E] it is taken for.
void merged_untransposed(const Walk& w, Tensor<double, 4>& heads) {
  rearrange(heads, [&](Index h, Index t, Index e) { return (t * w.H + h) * heads.extent(3) + e; });
}

// A [T, H·D] buffer, held here as [H, T, D], split as if it already were [H, T, D].
void split_untransposed(Tensor<double, 4>& x) {
  const Index H = x.extent(1), T = x.extent(2), D = x.extent(3);
  rearrange(x, [&](Index h, Index t, Index d) {
    const Index flat = (h * T + t) * D + d;  // in the [T, H, D] buffer
    const Index time = flat / (H * D), head = flat / D % H, channel = flat % D;
    return (head * T + time) * D + channel;
  });
}

void merge_untransposed(Recipe& r) {
  r.merge = merged_untransposed;
}

void split_all_untransposed(Recipe& r) {
  r.load = [load = r.load](Walk& w) {
    load(w);
    for (Tensor<double, 4>* x : {&w.q, &w.k, &w.v}) split_untransposed(*x);
  };
}

void merge_reversed(Recipe& r) {
  r.merge = [](const Walk& w, Tensor<double, 4>& heads) {
    rearrange(heads, [&](Index h, Index t, Index e) { return ((w.H - 1 - h) * w.Tq + t) * w.E + e; });
  };
}

// Channel c of the merged width holds head c mod H, not head c / E.
void merge_interleaved(Recipe& r) {
  r.merge = [](const Walk& w, Tensor<double, 4>& heads) {
    rearrange(heads, [&](Index h, Index t, Index e) {
      const Index channel = h * w.E + e;
      return (channel % w.H * w.Tq + t) * w.E + channel / w.H;
    });
  };
}

void merge_shifted(Recipe& r) {
  r.merge = [](const Walk& w, Tensor<double, 4>& heads) {
    rearrange(heads, [&](Index h, Index t, Index e) { return ((h + 1) % w.H * w.Tq + t) * w.E + e; });
  };
}

// Head h takes the channels h, h + H, h + 2H, … of the merged width.
void split_interleaved(Recipe& r) {
  r.load = [load = r.load](Walk& w) {
    load(w);
    for (Tensor<double, 4>* x : {&w.q, &w.k, &w.v}) {
      const Index H = x->extent(1), T = x->extent(2), D = x->extent(3);
      rearrange(*x, [&](Index h, Index t, Index d) {
        const Index channel = d * H + h;
        return (channel / D * T + t) * D + channel % D;
      });
    }
  };
}

void only_first(Recipe& r) {
  r.merge = [](const Walk& w, Tensor<double, 4>& heads) {
    rearrange(heads, [&](Index, Index t, Index e) { return t * w.E + e; });
  };
}

Index tiled(const Walk& w, Index h) {
  return h % w.G;
}
Index by_groups(const Walk& w, Index h) {
  return std::min(h / w.G, w.G - 1);
}
Index first(const Walk&, Index) {
  return 0;
}
Index last(const Walk& w, Index) {
  return w.G - 1;
}
Index reversed(const Walk& w, Index h) {
  return w.G - 1 - h / (w.H / w.G);
}

template <Index (*kMap)(const Walk&, Index)>
void both(Recipe& r) {
  r.key_head = r.value_head = kMap;
}

void keys_tiled(Recipe& r) {
  r.key_head = tiled;
}
void values_tiled(Recipe& r) {
  r.value_head = tiled;
}

void averaged(Recipe& r) {
  r.load = [load = r.load](Walk& w) {
    load(w);
    for (Tensor<double, 4>* x : {&w.k, &w.v}) {
      const Index G = x->extent(1), size = x->extent(2) * x->extent(3);
      for (Index b = 0; b < w.B; ++b) {
        for (Index at = 0; at < size; ++at) {
          double sum = 0;
          for (Index g = 0; g < G; ++g) sum += x->data()[(b * G + g) * size + at];
          for (Index g = 0; g < G; ++g) x->data()[(b * G + g) * size + at] = sum / static_cast<double>(G);
        }
      }
    }
  };
}

}  // namespace

std::vector<Fault> head_faults() {
  using enum Group;
  const std::string_view back = "Transpose [B, H, T, E] to [B, T, H, E] before joining the heads.";
  const std::string_view repeat = "Query head h reads key-value head h / (H / G): repeat-interleave.";
  return {
      {"heads_merged_untransposed", heads, kMerge, merge_untransposed,
       "heads are joined by a reshape without the transpose", "with one head nothing changes", back},
      {"heads_split_untransposed", heads, kQueries | kKeys | kValues, split_all_untransposed,
       "[B, T, H·D] is reshaped to [B, H, T, D] without the transpose", "with one head nothing changes",
       "Reshape to [B, T, H, D], then transpose."},
      {"heads_reversed", heads, kMerge, merge_reversed, "heads are joined last first", "head h holds head H − 1 − h",
       "Join the heads in ascending order."},
      {"heads_merged_interleaved", heads, kMerge, merge_interleaved,
       "heads are joined channel by channel instead of head by head", "channel c holds head c mod H", back},
      {"heads_split_interleaved", heads, kQueries | kKeys | kValues, split_interleaved,
       "head h takes the channels h, h + H, h + 2H, …", "each head mixes channels of all",
       "Head h owns the channels h·D … h·D + D − 1."},
      {"heads_shifted", heads, kMerge, merge_shifted, "head h holds the output of head h + 1",
       "outputs are right, one head off", "Join the heads in ascending order from head 0."},
      {"heads_all_first", heads, kMerge, only_first, "the output of head 0 stands in every head", "all heads agree",
       "Index the output by head."},
      {"groups_tiled", groups, kHeadMap, both<tiled>, "key-value heads are tiled, not repeat-interleaved",
       "head h reads h mod G", repeat},
      {"groups_wrong_divisor", groups, kHeadMap, both<by_groups>, "h / G stands for h / (H / G)",
       "right where H = G²", repeat},
      {"groups_all_first", groups, kHeadMap, both<first>, "every query head reads key-value head 0",
       "the first group is right", repeat},
      {"groups_all_last", groups, kHeadMap, both<last>, "every query head reads the last key-value head",
       "the last group is right", repeat},
      {"groups_reversed", groups, kHeadMap, both<reversed>, "key-value heads are read last first",
       "right with one group", repeat},
      {"groups_keys_tiled", groups, kHeadMap, keys_tiled, "keys are tiled, values repeated",
       "weights of one head on values of another", repeat},
      {"groups_values_tiled", groups, kHeadMap, values_tiled, "values are tiled, keys repeated",
       "right weights on values of another head", repeat},
      {"groups_averaged", groups, kKeys | kValues, averaged, "every query head reads the mean of all key-value heads",
       "right with one group", repeat},
  };
}

}  // namespace heedful::diagnosis
