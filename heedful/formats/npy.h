// .npy, one array (NumPy Enhancement Proposal 1, numpy.lib.format):
//
//     "\x93NUMPY" | major 1, 2 or 3 | minor 0 | header length, 2 bytes (major 1) or 4 | header | data
//
// The header is a Python dictionary {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }. It is read as that
// one form and never evaluated. Plain numbers and booleans of either byte order are read; records, text and pickled
// objects are refused. So is a file with fewer bytes than the shape says, or more.
#ifndef HEEDFUL_FORMATS_NPY_H_
#define HEEDFUL_FORMATS_NPY_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "heedful/formats/array.h"
#include "heedful/formats/bytes.h"

namespace heedful {

Array read_npy(const std::filesystem::path& path, Index max_bytes = kMaxFileBytes);
void write_npy(const std::filesystem::path& path, const Array& array);  // temp + fsync + rename

// The same without a file, `where` naming the source in errors.
Array parse_npy(std::vector<std::byte> file, std::string_view where);
std::string npy_preamble(const Array& array, std::string_view where);  // everything before the data; no bf16 in NumPy

}  // namespace heedful

#endif  // HEEDFUL_FORMATS_NPY_H_
