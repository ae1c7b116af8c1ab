// What must hold of every array that a reader let through.
#ifndef HEEDFUL_FUZZ_CHECK_ARRAY_H_
#define HEEDFUL_FUZZ_CHECK_ARRAY_H_

#include "heedful/core/error.h"
#include "heedful/formats/array.h"

namespace heedful {

inline void check_array(const Array& array) {
  check_size(array, "array");
  try {
    HEEDFUL_CHECK(std::cmp_equal(to_vector<double>(array, "array").size(), array.size()));
  } catch (const Error&) {  // a boolean other than 0 and 1
    HEEDFUL_CHECK(array.type == DataType::boolean);
  }
  try {
    to_vector<Index>(array, "array");
  } catch (const Error&) {  // fractions and the like
  }
}

}  // namespace heedful

#endif  // HEEDFUL_FUZZ_CHECK_ARRAY_H_
