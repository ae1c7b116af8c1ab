// Cases and answers as files: .npz or .safetensors, one named array each.
//
//     q [B, H, Tq, D]   k [B, G, Tk, D]   v [B, G, Tk, E]        or [B, T, heads · width] with heads=, or [T, width],
//                                                                or [B, T, heads, width] with layout=bthd
//     out [B, H, Tq, E]                                          in the case itself, or beside a probe
//     mask, bias [B|1, H|1, Tq|1, Tk], [B, Tq, Tk] or [Tq, Tk]   mask: booleans, true = may look
//     key_lengths [B]   query_offsets [B]   query_documents [B, Tq]   key_documents [B, Tk]
//     query_positions [B|1, Tq], key_positions [B|1, Tk], or positions for both: q and k come before the rotation
//     weights [B, H, Tq, Tk]   lse [B, H, Tq]   dout with dq, dk, dv
//     scale, softcap, causal, window, left_padded, rotary_base, rotary_interleaved, rotary_width, significand_bits:
//         numbers; causal is 0 no, 1 top_left, 2 bottom_right, 3 by query_offsets, 4 square
//
// An array with another name is refused: a misspelt option must not pass for one that was not given.
#ifndef HEEDFUL_INSPECTION_DIAGNOSE_FILE_H_
#define HEEDFUL_INSPECTION_DIAGNOSE_FILE_H_

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "heedful/inspection/diagnose.h"

namespace heedful {

// What the caller says of the implementation beside the file: it wins over the file.
struct CaseOverrides {
  std::optional<DataType> type;  // otherwise significand_bits, otherwise the coarsest of q, k, v and out
  std::string declared;          // "causal=top_left,scale=default,…": see diagnose_declared.h
};

ArrayMap read_arrays(const std::filesystem::path& path);  // .npz or .safetensors, by the name's ending

Observation read_observation(const ArrayMap& arrays, std::string_view name, const CaseOverrides& overrides);
AttentionCase read_case(const ArrayMap& arrays, std::string_view name, const CaseOverrides& overrides);
AttentionAnswer read_answer(const ArrayMap& arrays, const AttentionCase& given, const CaseOverrides& overrides);

// Puts the outputs of `answer`, which may hold other arrays too, into the case they belong to.
void add_answer(ArrayMap& arrays, ArrayMap answer);

}  // namespace heedful

#endif  // HEEDFUL_INSPECTION_DIAGNOSE_FILE_H_
