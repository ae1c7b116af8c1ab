#include "heedful/inspection/diagnose_case.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heedful/core/error.h"
#include "heedful/inspection/diagnose_rounding.h"
#include "heedful/inspection/diagnose_simulation.h"

namespace heedful {
namespace {

constexpr std::string_view kWhere = "diagnose";

template <class T, int Rank>
void check_shape(const Tensor<T, Rank>& x, std::string_view name, const Extents<Rank>& expected) {
  require(x.extents() == expected, kWhere, "{}: expected shape {}, got {}", name, shape_text(expected),
          shape_text(x.extents()));
}

// [B|1, H|1, Tq, Tk]
template <class T>
void check_shared_shape(const AttentionCase& given, const Tensor<T, 4>& x, std::string_view name) {
  if (!is_given(x)) return;
  const bool fits = (x.extent(0) == given.B() || x.extent(0) == 1) &&
                    (x.extent(1) == given.H() || x.extent(1) == 1) && x.extent(2) == given.Tq() &&
                    x.extent(3) == given.Tk();
  require(fits, kWhere, "{}: expected shape [{} or 1, {} or 1, {}, {}], got {}", name, given.B(), given.H(),
          given.Tq(), given.Tk(), shape_text(x.extents()));
}

void check_count(const std::vector<Index>& numbers, std::string_view name, Index expected) {
  require(static_cast<Index>(numbers.size()) == expected, kWhere, "{}: expected {} numbers, got {}", name, expected,
          numbers.size());
}

void check_declared(const AttentionCase& given) {
  const DeclaredAttention& declared = given.declared;
  diagnosis::rounding_of(declared.type);
  require(!declared.scale || (std::isfinite(*declared.scale) && *declared.scale != 0), kWhere,
          "scale: expected a finite number other than 0, got {}", declared.scale.value_or(0));
  require(std::isfinite(declared.softcap) && declared.softcap >= 0, kWhere, "softcap: expected at least 0, got {}",
          declared.softcap);
  require(declared.window >= 0, kWhere, "window: expected at least 0, got {}", declared.window);
  require(!(declared.causal || declared.window > 0) || declared.alignment != Alignment::square ||
              given.Tq() == given.Tk(),
          kWhere, "causal: expected top_left, bottom_right or offsets where Tq = {} and Tk = {} differ, got square",
          given.Tq(), given.Tk());
  if (declared.alignment == Alignment::offsets) check_count(declared.query_offsets, "query_offsets", given.B());
  if (!declared.key_lengths.empty()) {
    check_count(declared.key_lengths, "key_lengths", given.B());
    for (const Index length : declared.key_lengths) {
      require(0 <= length && length <= given.Tk(), kWhere, "key_lengths: expected 0 to {}, got {}", given.Tk(),
              length);
    }
  }
  if (declared.rotary) {
    require(given.rotary_width() % 2 == 0 && 0 < given.rotary_width() && given.rotary_width() <= given.D(), kWhere,
            "rotary width: expected an even number up to D = {}, got {}", given.D(), given.rotary_width());
    require(std::isfinite(declared.rotary->base) && declared.rotary->base > 0, kWhere,
            "rotary base: expected a positive number, got {}", declared.rotary->base);
    check_count(declared.query_positions, "query positions", given.B() * given.Tq());
    check_count(declared.key_positions, "key positions", given.B() * given.Tk());
  }
  require(declared.query_documents.empty() == declared.key_documents.empty(), kWhere,
          "documents: expected query_documents and key_documents or neither, got one of them");
  if (!declared.query_documents.empty()) {
    check_count(declared.query_documents, "query_documents", given.B() * given.Tq());
    check_count(declared.key_documents, "key_documents", given.B() * given.Tk());
  }
}

void check_finite_row(const Tensor<double, 4>& x, std::string_view name, Index b, Index h, Index t) {
  for (Index d = 0; d < x.extent(3); ++d) {
    require(std::isfinite(x(b, h, t, d)), kWhere,
            "{}[{}, {}, {}, {}]: expected a finite number where it is visible, got {}", name, b, h, t, d,
            x(b, h, t, d));
  }
}

// Of q, every row that sees a key; of k and v, every row that is seen.
void check_visible_numbers(const AttentionCase& given) {
  const diagnosis::Recipe recipe = diagnosis::correct_recipe(given.declared);
  const diagnosis::Walk w(given, recipe);
  Tensor<bool, 3> is_seen({given.B(), given.G(), given.Tk()});
  for (Index b = 0; b < given.B(); ++b) {
    for (Index h = 0; h < given.H(); ++h) {
      for (Index i = 0; i < given.Tq(); ++i) {
        bool sees_any = false;
        for (Index j = 0; j < given.Tk(); ++j) {
          if (!w.is_meant_to_see(b, h, i, j)) continue;
          if (is_given(given.bias) && !std::isfinite(w.bias(b, h, i, j))) {
            fail(kWhere, "bias[{}, {}, {}, {}]: expected a finite number or −∞, got {}", b, h, i, j,
                 w.bias(b, h, i, j));
          }
          sees_any = is_seen(b, h / (given.H() / given.G()), j) = true;
        }
        if (sees_any) check_finite_row(given.q, "q", b, h, i);
        if (given.has_gradients()) check_finite_row(given.dout, "dout", b, h, i);
      }
    }
    for (Index g = 0; g < given.G(); ++g) {
      for (Index j = 0; j < given.Tk(); ++j) {
        if (!is_seen(b, g, j)) continue;
        check_finite_row(given.k, "k", b, g, j);
        check_finite_row(given.v, "v", b, g, j);
      }
    }
  }
}

}  // namespace

AttentionCase AttentionCase::copy() const {
  return {name, declared, q.copy(), k.copy(), v.copy(), bias.copy(), keep.copy(), dout.copy()};
}

AttentionAnswer AttentionAnswer::copy() const {
  return {out.copy(), weights.copy(), lse.copy(), dq.copy(), dk.copy(), dv.copy()};
}

void check_case(const AttentionCase& given) {
  require(is_given(given.q) && is_given(given.k) && is_given(given.v), kWhere, "case: expected q, k and v, got {}",
          !is_given(given.q)   ? "no q"
          : !is_given(given.k) ? "no k"
                               : "no v");
  for (const Index extent : {given.B(), given.H(), given.G(), given.Tq(), given.Tk(), given.D(), given.E()}) {
    require(extent >= 1, kWhere, "case: expected no empty axis, got q {}, k {}, v {}", shape_text(given.q.extents()),
            shape_text(given.k.extents()), shape_text(given.v.extents()));
  }
  check_shape<double, 4>(given.k, "k", {given.B(), given.G(), given.Tk(), given.D()});
  check_shape<double, 4>(given.v, "v", {given.B(), given.G(), given.Tk(), given.E()});
  require(given.H() % given.G() == 0, kWhere,
          "heads: expected H a multiple of G, got H = {}, G = {} ([B, T, heads, width] is layout=bthd)", given.H(),
          given.G());
  check_shared_shape(given, given.bias, "bias");
  check_shared_shape(given, given.keep, "mask");
  if (given.has_gradients())
    check_shape<double, 4>(given.dout, "dout", {given.B(), given.H(), given.Tq(), given.E()});
  check_declared(given);

  check_visible_numbers(given);
}

void check_answer(const AttentionCase& given, const AttentionAnswer& answer) {
  const auto check = [](const auto& x, std::string_view name, const auto& extents) {
    if (!is_given(x)) return;
    require(x.extents() == extents, kWhere, "{}: expected shape {}, got {}", name, shape_text(extents),
            shape_text(x.extents()));
  };
  require(is_given(answer.out), kWhere, "answer: expected an array out, got none");
  check(answer.out, "out", Extents<4>{given.B(), given.H(), given.Tq(), given.E()});
  check(answer.weights, "weights", Extents<4>{given.B(), given.H(), given.Tq(), given.Tk()});
  check(answer.lse, "lse", Extents<3>{given.B(), given.H(), given.Tq()});
  check(answer.dq, "dq", given.q.extents());
  check(answer.dk, "dk", given.k.extents());
  check(answer.dv, "dv", given.v.extents());
  const bool has_gradients = is_given(answer.dq) || is_given(answer.dk) || is_given(answer.dv);
  require(!has_gradients || given.has_gradients(), kWhere, "gradients: expected dout beside dq, dk, dv, got none");
}

}  // namespace heedful
