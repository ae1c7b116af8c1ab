// check_attention: drives a function through the probes, one line in a unit test:
//
//     EXPECT_TRUE(check_attention<float>(context, {my_forward, my_backward}).is_correct());
//
// The function has the shape of attention/attention.h's own. What is asked of it is said in ProbeOptions::features.
#ifndef HEEDFUL_INSPECTION_DIAGNOSE_CHECK_H_
#define HEEDFUL_INSPECTION_DIAGNOSE_CHECK_H_

#include <functional>

#include "heedful/attention/attention.h"
#include "heedful/inspection/diagnose_counterexample.h"
#include "heedful/inspection/diagnose_probes.h"

namespace heedful {

template <class T>
struct AttentionUnderTest {
  std::function<void(const AttentionOutputs<T>&, const AttentionInputs<T>&, const AttentionOptions<T>&)> forward;
  // Optional.
  std::function<void(const AttentionGradients<T>&, In<T, 4> dout, const AttentionInputs<T>&, const AttentionSaved<T>&,
                     const AttentionOptions<T>&)>
      backward;
};

Diagnosis check_attention(const Context& context, const Answers& answers, const ProbeOptions& options = {});

// Features that AttentionOptions cannot say are left out: rotary positions and left padding.
template <class T>
Diagnosis check_attention(const Context& context, const AttentionUnderTest<T>& attention, ProbeOptions options = {});

// The case in the types of attention/attention.h, answered by the function. Needs no rotary positions, no left padding.
template <class T>
AttentionAnswer answer_with(const AttentionUnderTest<T>& attention, const AttentionCase& given);

}  // namespace heedful

#endif  // HEEDFUL_INSPECTION_DIAGNOSE_CHECK_H_
