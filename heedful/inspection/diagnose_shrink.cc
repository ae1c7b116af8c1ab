#include "heedful/inspection/diagnose_shrink.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "heedful/core/error.h"

namespace heedful {
namespace {

// x without the places of `axis` that `is_cut` names.
template <class T, class IsCut>
Tensor<T, 4> cut(const Tensor<T, 4>& x, int axis, const IsCut& is_cut) {
  if (!is_given(x)) return {};
  std::vector<Index> kept;
  for (Index at = 0; at < x.extent(axis); ++at) {
    if (!is_cut(at)) kept.push_back(at);
  }
  Extents<4> extents = x.extents();
  extents[static_cast<std::size_t>(axis)] = static_cast<Index>(kept.size());
  Tensor<T, 4> result(extents);
  for (Index a = 0; a < extents[0]; ++a) {
    for (Index b = 0; b < extents[1]; ++b) {
      for (Index c = 0; c < extents[2]; ++c) {
        for (Index d = 0; d < extents[3]; ++d) {
          Extents<4> from{a, b, c, d};
          Index& moved = from[static_cast<std::size_t>(axis)];
          moved = kept[static_cast<std::size_t>(moved)];
          result(a, b, c, d) = x(from[0], from[1], from[2], from[3]);
        }
      }
    }
  }
  return result;
}

// A shared axis of extent 1 stays.
template <class T, class IsCut>
Tensor<T, 4> cut_shared(const Tensor<T, 4>& x, int axis, const IsCut& is_cut) {
  return is_given(x) && x.extent(axis) > 1 ? cut(x, axis, is_cut) : x.copy();
}

// rows [B, T] without some b or t.
template <class IsCut>
std::vector<Index> cut_rows(const std::vector<Index>& rows, Index T, const IsCut& is_cut) {
  std::vector<Index> result;
  for (std::size_t at = 0; at < rows.size(); ++at) {
    if (!is_cut(static_cast<Index>(at) / T, static_cast<Index>(at) % T)) result.push_back(rows[at]);
  }
  return result;
}

class Shrinker {
 public:
  Shrinker(const AttentionCase& given, const std::function<bool(const AttentionCase&)>& still_wrong, int budget)
      : best_(given.copy()),
        still_wrong_(still_wrong),
        budget_(budget),
        least_queries_(given.Tq() > given.Tk() ? given.Tq() : 0) {}

  AttentionCase run() {
    bool changed = true;
    while (changed) {
      changed = false;
      for (const Axis axis : {Axis::batch, Axis::group, Axis::head_of_group, Axis::key, Axis::query,
                              Axis::query_width, Axis::value_width}) {
        changed = cut_axis(axis) || changed;
      }
      changed = drop_options() || changed;
    }
    round_numbers();
    return std::move(best_);
  }

 private:
  bool accept(AttentionCase smaller) {
    if (budget_-- <= 0 || smaller.Tq() > std::max(smaller.Tk(), least_queries_)) return false;
    if (without_keys(smaller) > without_keys(best_)) return false;  // nor is a sequence of nothing a plain example
    try {
      check_case(smaller);
      if (!still_wrong_(smaller)) return false;
    } catch (const Error&) {  // a smaller case that is not even a case
      return false;
    }
    best_ = std::move(smaller);
    return true;
  }

  static Index without_keys(const AttentionCase& c) { return std::ranges::count(c.declared.key_lengths, 0); }

  bool cut_axis(Axis axis) {
    bool changed = false;
    for (Index size = extent(best_, axis) / 2; size >= 1; size /= 2) {
      for (Index begin = 0; begin + size <= extent(best_, axis) && extent(best_, axis) > size;) {
        if (accept(without(best_, axis, begin, begin + size))) {
          changed = true;
        } else {
          begin += size;
        }
      }
    }
    return changed;
  }

  template <class Change>
  bool try_change(bool is_there, const Change& change) {
    if (!is_there) return false;
    AttentionCase simpler = best_.copy();
    change(simpler);
    return accept(std::move(simpler));
  }

  bool drop_options() {
    const DeclaredAttention& d = best_.declared;
    bool changed = false;
    const auto drop = [&](bool is_there, const auto& change) { changed = try_change(is_there, change) || changed; };
    drop(is_given(best_.bias), [](AttentionCase& c) { c.bias = {}; });
    drop(is_given(best_.keep), [](AttentionCase& c) { c.keep = {}; });
    drop(d.softcap > 0, [](AttentionCase& c) { c.declared.softcap = 0; });
    drop(d.window > 0, [](AttentionCase& c) { c.declared.window = 0; });
    drop(!d.query_documents.empty(), [](AttentionCase& c) {
      c.declared.query_documents.clear();
      c.declared.key_documents.clear();
    });
    drop(!d.key_lengths.empty(), [](AttentionCase& c) { c.declared.key_lengths.clear(); });
    drop(d.rotary.has_value(), [](AttentionCase& c) { c.declared.rotary.reset(); });
    drop(d.causal, [](AttentionCase& c) { c.declared.causal = false; });
    return changed;
  }

  void round_numbers() {
    for (Tensor<double, 4> AttentionCase::* array :
         {&AttentionCase::q, &AttentionCase::k, &AttentionCase::v, &AttentionCase::dout, &AttentionCase::bias}) {
      const bool all_rounded = try_change(is_given(best_.*array), [&](AttentionCase& c) {
        for (double& x : c.*array) x = std::nearbyint(x) + 0.0;  // no −0
      });
      if ((best_.*array).size() > 64) continue;
      for (Index at = 0; at < (best_.*array).size(); ++at) {
        const auto put = [&](double value) {
          return try_change(true, [&](AttentionCase& c) { (c.*array).data()[at] = value; });
        };
        const double now = (best_.*array).data()[at];
        if (!std::isfinite(now) || now == 0 || put(0) || now == 1 || put(1) || all_rounded) continue;
        put(std::nearbyint(now) + 0.0);
      }
    }
  }

  AttentionCase best_;
  const std::function<bool(const AttentionCase&)>& still_wrong_;
  int budget_;
  Index least_queries_;  // more queries than keys is a strange example, unless that is what was given
};

}  // namespace

Index extent(const AttentionCase& given, Axis axis) {
  switch (axis) {
    case Axis::batch:
      return given.B();
    case Axis::group:
      return given.G();
    case Axis::head_of_group:
      return given.H() / given.G();
    case Axis::query:
      return given.Tq();
    case Axis::key:
      return given.Tk();
    case Axis::query_width:
      return given.D();
    case Axis::value_width:
      return given.E();
  }
  fail("diagnose", "no such axis");
}

AttentionCase without(const AttentionCase& given, Axis axis, Index begin, Index end) {
  const Index group = given.H() / given.G();
  const auto is_cut = [&](Index at) { return begin <= at && at < end; };
  const auto is_head_cut = [&](Index h) { return is_cut(axis == Axis::group ? h / group : h % group); };
  AttentionCase c = given.copy();
  DeclaredAttention& d = c.declared;
  switch (axis) {
    case Axis::batch:
      for (Tensor<double, 4>* x : {&c.q, &c.k, &c.v, &c.dout}) *x = cut(*x, 0, is_cut);
      c.bias = cut_shared(c.bias, 0, is_cut);
      c.keep = cut_shared(c.keep, 0, is_cut);
      d.key_lengths = cut_rows(d.key_lengths, 1, [&](Index b, Index) { return is_cut(b); });
      d.query_offsets = cut_rows(d.query_offsets, 1, [&](Index b, Index) { return is_cut(b); });
      for (auto* rows : {&d.query_documents, &d.query_positions}) {
        *rows = cut_rows(*rows, given.Tq(), [&](Index b, Index) { return is_cut(b); });
      }
      for (auto* rows : {&d.key_documents, &d.key_positions}) {
        *rows = cut_rows(*rows, given.Tk(), [&](Index b, Index) { return is_cut(b); });
      }
      break;
    case Axis::group:
    case Axis::head_of_group:
      for (Tensor<double, 4>* x : {&c.q, &c.dout}) *x = cut(*x, 1, is_head_cut);
      if (axis == Axis::group) {
        for (Tensor<double, 4>* x : {&c.k, &c.v}) *x = cut(*x, 1, is_cut);
      }
      c.bias = cut_shared(c.bias, 1, is_head_cut);
      c.keep = cut_shared(c.keep, 1, is_head_cut);
      break;
    case Axis::query:
      for (Tensor<double, 4>* x : {&c.q, &c.dout, &c.bias}) *x = cut(*x, 2, is_cut);
      c.keep = cut(c.keep, 2, is_cut);
      for (auto* rows : {&d.query_documents, &d.query_positions}) {
        *rows = cut_rows(*rows, given.Tq(), [&](Index, Index i) { return is_cut(i); });
      }
      break;
    case Axis::key:
      for (Tensor<double, 4>* x : {&c.k, &c.v}) *x = cut(*x, 2, is_cut);
      c.bias = cut(c.bias, 3, is_cut);
      c.keep = cut(c.keep, 3, is_cut);
      for (auto* rows : {&d.key_documents, &d.key_positions}) {
        *rows = cut_rows(*rows, given.Tk(), [&](Index, Index j) { return is_cut(j); });
      }
      for (Index& length : d.key_lengths) {
        const Index first = d.left_padded ? given.Tk() - length : 0;  // of the keys that are no padding
        length -= std::max<Index>(std::min(end, first + length) - std::max(begin, first), 0);
      }
      break;
    case Axis::query_width:
      for (Tensor<double, 4>* x : {&c.q, &c.k}) *x = cut(*x, 3, is_cut);
      break;
    case Axis::value_width:
      for (Tensor<double, 4>* x : {&c.v, &c.dout}) *x = cut(*x, 3, is_cut);
      break;
  }
  return c;
}

AttentionCase shrink(const AttentionCase& given, const std::function<bool(const AttentionCase&)>& still_wrong,
                     int budget) {
  return Shrinker(given, still_wrong, budget).run();
}

}  // namespace heedful
