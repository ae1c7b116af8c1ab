// What an implementation is meant to compute, as text: "causal=top_left,scale=default,window=4".
//
//     causal     none, square, top_left, bottom_right or offsets          rope       none, half or interleaved
//     scale      default (1/√D) or a number                              rope_base  a number, 10000 where not given
//     softcap    a number, 0: off                                        rope_width a number, 0: all of D
//     window     a number, 0: off; counts the current token              heads      H, for [B, T, H·D] arrays
//     padding    right or left                                           kv_heads   G, for [B, T, G·D] arrays
//     empty      zero, nan or mean: what a row holds that sees nothing
#ifndef HEEDFUL_INSPECTION_DIAGNOSE_DECLARED_H_
#define HEEDFUL_INSPECTION_DIAGNOSE_DECLARED_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heedful/inspection/diagnose_case.h"

namespace heedful {

class Declarations {
 public:
  explicit Declarations(std::string_view text);  // throws Error on an unknown key or a value that does not fit

  std::optional<Index> heads() const { return heads_; }
  std::optional<Index> kv_heads() const { return kv_heads_; }
  bool tokens_first() const { return tokens_first_; }  // layout=bthd: four axes are [B, T, heads, width]
  void apply(DeclaredAttention& declared) const;

 private:
  std::vector<std::pair<std::string, std::string>> entries_;
  std::optional<Index> heads_, kv_heads_;
  bool tokens_first_ = false;
};

// f64, f32, bf16 or f16.
DataType parse_declared_type(std::string_view text);

}  // namespace heedful

#endif  // HEEDFUL_INSPECTION_DIAGNOSE_DECLARED_H_
