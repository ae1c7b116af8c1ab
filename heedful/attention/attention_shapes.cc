#include "heedful/attention/attention_shapes.h"

#include <cmath>
#include <limits>
#include <string_view>
#include <type_traits>

#include "heedful/core/error.h"

namespace heedful {
namespace {

constexpr std::string_view kWhere = "attention";

// Beyond this a position is no longer exact in double, and no sum of two positions overflows below it.
constexpr Index kMaxPosition = Index{1} << 53;

template <class T, int Rank>
void check_view(const View<T, Rank>& view, std::string_view name, std::string_view letters,
                const std::type_identity_t<Extents<Rank>>& expected) {
  if (view.extents() == expected && (!view.empty() || view.size() == 0)) return;
  if (view.empty()) fail(kWhere, "{}: expected {} = {}, got none", name, letters, shape_text(expected));
  fail(kWhere, "{}: expected {} = {}, got {}", name, letters, shape_text(expected), shape_text(view.extents()));
}

template <class T, int Rank>
void check_optional(const View<T, Rank>& view, std::string_view name, std::string_view letters,
                    const std::type_identity_t<Extents<Rank>>& expected) {
  if (!view.empty()) check_view(view, name, letters, expected);
}

template <class T>
void check_shared(const View<T, 4>& view, std::string_view name, const AttentionShape& shape) {
  if (view.empty()) return;
  const auto fits = [&view](int axis, Index extent) { return view.extent(axis) == extent; };
  if ((fits(0, shape.B) || fits(0, 1)) && (fits(1, shape.H) || fits(1, 1)) && fits(2, shape.Tq) &&
      fits(3, shape.Tk)) {
    return;
  }
  fail(kWhere, "{}: expected [B|1, H|1, Tq, Tk] = [{}|1, {}|1, {}, {}], got {}", name, shape.B, shape.H, shape.Tq,
       shape.Tk, shape_text(view.extents()));
}

// Of the keys as rows (Rank 4) or in panels (Rank 5); the panels do not tell Tk, so then v does.
template <class T, class S, int Rank>
AttentionShape shape_of(const View<const T, 4>& q, const View<const S, Rank>& keys, const View<const S, 4>& v) {
  AttentionShape shape{.B = q.extent(0),
                       .Tq = q.extent(2),
                       .Tk = Rank == 4 ? keys.extent(2) : v.extent(2),
                       .H = q.extent(1),
                       .G = keys.extent(1),
                       .D = q.extent(3),
                       .E = v.extent(3)};
  check_view(q, "q", "[B, H, Tq, D]", {shape.B, shape.H, shape.Tq, shape.D});
  if constexpr (Rank == 4) {
    check_view(keys, "k", "[B, G, Tk, D]", {shape.B, shape.G, shape.Tk, shape.D});
  } else {
    check_view(keys, "key_panels", "[B, G, ⌈Tk/16⌉, D, 16]",
               {shape.B, shape.G, (shape.Tk + kPanel - 1) / kPanel, shape.D, kPanel});
    require(keys.size() == 0 || keys[0][0].is_contiguous(), kWhere,
            "key_panels: expected those of a head without a gap between them, got strides {}",
            shape_text(keys.strides()));
  }
  check_view(v, "v", "[B, G, Tk, E]", {shape.B, shape.G, shape.Tk, shape.E});
  require(shape.H >= 1 && shape.D >= 1, kWhere, "q: expected heads and width of at least 1, got {} and {}", shape.H,
          shape.D);
  require(shape.G >= 1 && shape.E >= 1, kWhere, "v: expected heads and width of at least 1, got {} and {}", shape.G,
          shape.E);
  require(shape.H % shape.G == 0, kWhere,
          "heads: expected the query heads to be a multiple of the key-value heads, got {} and {}", shape.H, shape.G);
  return shape;
}

template <class T>
AttentionShape check_inputs(const AttentionInputs<T>& inputs) {
  const auto& [q, k, v, panels, panels_bf16, v_bf16] = inputs;
  if (!panels_bf16.empty() || !v_bf16.empty()) {
    require(k.empty() && v.empty() && panels.empty(), kWhere,
            "k, v, key_panels: expected none beside key_panels_bf16 and v_bf16");
    return shape_of(q, panels_bf16, v_bf16);
  }
  if (panels.empty()) return shape_of(q, k, v);
  require(k.empty(), kWhere, "k: expected none beside key_panels");
  return shape_of(q, panels, v);
}

template <class T>
void check_positions(const AttentionShape& shape, const AttentionOptions<T>& options) {
  const bool position_matters = options.causal || options.window > 0 || !options.alibi_slopes.empty();
  require(options.alignment != Alignment::square || !position_matters || shape.Tq == shape.Tk, kWhere,
          "alignment: with {} queries on {} keys, expected top_left, bottom_right or offsets, got square", shape.Tq,
          shape.Tk);
  if (options.alignment == Alignment::offsets) {
    check_view(options.query_offsets, "query_offsets", "[B]", {shape.B});
    for (Index b = 0; b < shape.B; ++b) {
      const Index offset = options.query_offsets[b];
      require(-kMaxPosition <= offset && offset <= kMaxPosition, kWhere,
              "query_offsets[{}]: expected at most 2^53 either way, got {}", b, offset);
    }
  } else {
    require(options.query_offsets.empty(), kWhere, "query_offsets: expected only with Alignment::offsets");
  }
}

// The options are in double: is this one a finite number of the arithmetic too?
template <class T>
bool is_finite_in(double number) {
  return std::isfinite(number) && std::abs(number) <= std::numeric_limits<T>::max();
}

}  // namespace

template <class T>
AttentionShape check_attention(const AttentionInputs<T>& inputs, const AttentionOptions<T>& options) {
  const AttentionShape shape = check_inputs(inputs);
  require(is_finite_in<T>(options.scale.value_or(1)), kWhere, "scale: expected a finite number of this type, got {}",
          options.scale.value_or(1));
  require(
      options.softcap == 0 || (is_finite_in<T>(options.softcap) && options.softcap >= std::numeric_limits<T>::min()),
      kWhere, "softcap: expected 0 (off) or a positive number of this type, got {}", options.softcap);
  require(options.window >= 0, kWhere, "window: expected 0 (off) or at least 1, got {}", options.window);
  check_shared(options.bias, "bias", shape);
  check_shared(options.keep, "keep", shape);
  check_optional(options.alibi_slopes, "alibi_slopes", "[H]", {shape.H});
  if (!options.alibi_slopes.empty()) {
    for (Index h = 0; h < shape.H; ++h) {
      require(is_finite_in<T>(options.alibi_slopes[h]), kWhere,
              "alibi_slopes[{}]: expected a finite number of this type, got {}", h, options.alibi_slopes[h]);
    }
  }
  check_positions(shape, options);
  if (!options.key_lengths.empty()) {
    check_view(options.key_lengths, "key_lengths", "[B]", {shape.B});
    for (Index b = 0; b < shape.B; ++b) {
      require(0 <= options.key_lengths[b] && options.key_lengths[b] <= shape.Tk, kWhere,
              "key_lengths[{}]: expected 0 to Tk = {}, got {}", b, shape.Tk, options.key_lengths[b]);
    }
  }
  require(options.query_documents.empty() == options.key_documents.empty(), kWhere,
          "documents: expected those of the queries and of the keys, got only one of them");
  check_optional(options.query_documents, "query_documents", "[B, Tq]", {shape.B, shape.Tq});
  check_optional(options.key_documents, "key_documents", "[B, Tk]", {shape.B, shape.Tk});
  return shape;
}

template <class T>
void refuse_cache(const AttentionInputs<T>& inputs) {
  require(inputs.key_panels.empty() && inputs.key_panels_bf16.empty() && inputs.v_bf16.empty(), kWhere,
          "key_panels: expected none; what a cache lends serves the forward pass alone");
}

template <class T>
void check_outputs(const AttentionShape& shape, const AttentionOutputs<T>& outputs) {
  const Extents<3> rows{shape.B, shape.H, shape.Tq};
  const Extents<4> pairs{shape.B, shape.H, shape.Tq, shape.Tk};
  check_view(outputs.out, "out", "[B, H, Tq, E]", {shape.B, shape.H, shape.Tq, shape.E});
  require(outputs.row_max.empty() == outputs.row_sum.empty(), kWhere,
          "row_max and row_sum: expected both or neither, got only one of them");
  check_optional(outputs.row_max, "row_max", "[B, H, Tq]", rows);
  check_optional(outputs.row_sum, "row_sum", "[B, H, Tq]", rows);
  check_optional(outputs.log_sum_exp, "log_sum_exp", "[B, H, Tq]", rows);
  check_optional(outputs.weights, "weights", "[B, H, Tq, Tk]", pairs);
  check_optional(outputs.scores, "scores", "[B, H, Tq, Tk]", pairs);
}

template <class T>
void check_backward(const AttentionShape& shape, const AttentionGradients<T>& gradients, In<T, 4> dout,
                    const AttentionSaved<T>& saved, const AttentionOptions<T>& options) {
  const Extents<4> out{shape.B, shape.H, shape.Tq, shape.E};
  const Extents<3> rows{shape.B, shape.H, shape.Tq};
  check_view(gradients.dq, "dq", "[B, H, Tq, D]", {shape.B, shape.H, shape.Tq, shape.D});
  check_view(gradients.dk, "dk", "[B, G, Tk, D]", {shape.B, shape.G, shape.Tk, shape.D});
  check_view(gradients.dv, "dv", "[B, G, Tk, E]", {shape.B, shape.G, shape.Tk, shape.E});
  check_view(dout, "dout", "[B, H, Tq, E]", out);
  check_view(saved.out, "saved out", "[B, H, Tq, E]", out);
  check_view(saved.row_max, "saved row_max", "[B, H, Tq]", rows);
  check_view(saved.row_sum, "saved row_sum", "[B, H, Tq]", rows);
  require(gradients.dbias.empty() || !options.bias.empty(), kWhere, "dbias: expected only where a bias is given");
  check_optional(gradients.dbias, "dbias", "the bias's extents", options.bias.extents());
}

template <class T>
double score_scale(const AttentionShape& shape, const AttentionOptions<T>& options) {
  return options.scale.value_or(1 / std::sqrt(static_cast<double>(shape.D)));
}

#define HEEDFUL_INSTANTIATE(T)                                                                       \
  template AttentionShape check_attention<T>(const AttentionInputs<T>&, const AttentionOptions<T>&); \
  template void refuse_cache<T>(const AttentionInputs<T>&);                                          \
  template void check_outputs<T>(const AttentionShape&, const AttentionOutputs<T>&);                 \
  template void check_backward<T>(const AttentionShape&, const AttentionGradients<T>&, In<T, 4>,     \
                                  const AttentionSaved<T>&, const AttentionOptions<T>&);             \
  template double score_scale<T>(const AttentionShape&, const AttentionOptions<T>&);
HEEDFUL_INSTANTIATE(float)
HEEDFUL_INSTANTIATE(double)
#undef HEEDFUL_INSTANTIATE

}  // namespace heedful
