// Calls `work` with the number type a precision names: with_precision(p, [&]<class T>() { … }).
#ifndef HEEDFUL_CLI_PRECISION_H_
#define HEEDFUL_CLI_PRECISION_H_

#include "heedful/training/options.h"

namespace heedful::cli {

template <class Work>
auto with_precision(Precision precision, Work work) {
  return precision == Precision::f32 ? work.template operator()<float>() : work.template operator()<double>();
}

}  // namespace heedful::cli

#endif  // HEEDFUL_CLI_PRECISION_H_
