// The backward pass of fused attention. One task works through one chunk of keys of one head: it owns dk and dv of the
// chunk, and adds into dq of every query that sees it, after the chunks before have. Every element of dq is then one
// chain over ascending keys, every element of dk and dv one chain over ascending heads and queries.
#include <algorithm>
#include <atomic>
#include <memory>
#include <type_traits>

#include "heedful/attention/attention.h"
#include "heedful/attention/fused_backward_call.h"
#include "heedful/attention/small_call.h"
#include "heedful/kernels/simd_targets.h"

#define HWY_TARGET_INCLUDE "heedful/attention/fused_backward.cc"
#include "hwy/foreach_target.h"  // first: it includes this file once a target

#include "heedful/attention/fused_backward_worker-inl.h"
#include "heedful/attention/small_backward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heedful::HWY_NAMESPACE {
namespace {

// Takes chunks until none is left. All heads' first chunks come first: where attention is causal they are the longest,
// and no chunk then waits long for the one before.
template <class T>
void backward_chunks(const BackwardCall<T>& call, std::atomic<Index>& next) {
  const Index G = call.fused.shape.G, heads = call.fused.shape.B * G;
  BackwardWorker<T> worker(call);
  for (Index n = next++; n < heads * call.chunks; n = next++) worker.run(n % heads / G, n % G, n / heads);
}
template <class T>
void backward_small(const BackwardCall<T>& call, KeyRange heads) {
  const Index G = call.fused.shape.G;
  SmallBackward<T> small(call);
  for (Index n = heads.begin; n < heads.end; ++n) small.run(n / G, n % G);
}

const BackwardTable<float>* backward_table_float() {
  static constexpr BackwardTable<float> kTable{backward_chunks<float>, backward_small<float>};
  return &kTable;
}
const BackwardTable<double>* backward_table_double() {
  static constexpr BackwardTable<double> kTable{backward_chunks<double>, backward_small<double>};
  return &kTable;
}

}  // namespace
}  // namespace heedful::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heedful {
namespace {

HWY_EXPORT(backward_table_float);
HWY_EXPORT(backward_table_double);

template <class T>
const BackwardTable<T>& backward_table() {
  if constexpr (std::is_same_v<T, float>) {
    return *HWY_DYNAMIC_DISPATCH(backward_table_float)();
  } else {
    return *HWY_DYNAMIC_DISPATCH(backward_table_double)();
  }
}

}  // namespace

template <HeadPath kPath, class T>
void attention_backward_on(const Context& context, const AttentionGradients<T>& gradients, In<T, 4> dout,
                           const AttentionInputs<T>& inputs, const AttentionSaved<T>& saved,
                           const AttentionOptions<T>& options) {
  refuse_cache(inputs);
  BackwardCall<T> call{.fused = {inputs, options},
                       .gradients = gradients,
                       .dbias = gradients.dbias,
                       .dout = dout,
                       .saved = saved,
                       .chunks = 0,
                       .tiles = 0};
  check_backward(call.fused.shape, gradients, dout, saved, options);
  const auto& [B, Tq, Tk, H, G, D, E] = call.fused.shape;
  if (kPath == HeadPath::fitting && is_small(call.fused)) {
    for_small_heads(context, call.fused, [&](KeyRange heads) { backward_table<T>().small(call, heads); });
    return;
  }
  const Extents<4> pairs{B, H, Tq, Tk};
  const bool shared_bias = !call.dbias.empty() && call.dbias.extents() != pairs;
  if (!call.dbias.empty()) call.dbias = broadcast(call.dbias, pairs);
  call.chunks = std::max(Index{1}, (Tk + kChunk - 1) / kChunk);
  call.tiles = (Tq + kTileQueries - 1) / kTileQueries;

  const bool several = call.chunks > 1;
  const bool in_place = gradients.dq.stride(3) == 1 && D % kPanel == 0;
  const Memory<T, 0> means(several ? B * H * Tq : 0);
  const Memory<T, 1> dq_sums(several && !in_place ? B * H * Tq * round_up(D, kPanel) : 0);
  const Index tiles = several ? B * H * call.tiles : 0;
  const Memory<std::atomic<Index>> chunks_done(tiles);
  std::uninitialized_value_construct_n(chunks_done.data(), tiles);
  if (several) {
    call.means = means.data();
    call.dq_sums = in_place ? nullptr : dq_sums.data();
    call.chunks_done = chunks_done.data();
  }
  std::atomic<Index> next = 0;
  // Sequences or heads that share a bias add into its gradient in ascending order, on one thread.
  const Index workers = shared_bias ? 1 : std::min<Index>(context.threads(), B * G * call.chunks);
  context.parallel_for(workers, [&](Index) { backward_table<T>().chunks(call, next); });
}

template <class T>
void attention_backward(const Context& context, const AttentionGradients<T>& gradients, In<T, 4> dout,
                        const AttentionInputs<T>& inputs, const AttentionSaved<T>& saved,
                        const AttentionOptions<T>& options) {
  attention_backward_on<HeadPath::fitting>(context, gradients, dout, inputs, saved, options);
}

#define HEEDFUL_INSTANTIATE(T)                                                                                      \
  template void attention_backward_on<HeadPath::general, T>(const Context&, const AttentionGradients<T>&, In<T, 4>, \
                                                            const AttentionInputs<T>&, const AttentionSaved<T>&,    \
                                                            const AttentionOptions<T>&);                            \
  template void attention_backward<T>(const Context&, const AttentionGradients<T>&, In<T, 4>,                       \
                                      const AttentionInputs<T>&, const AttentionSaved<T>&,                          \
                                      const AttentionOptions<T>&);
HEEDFUL_INSTANTIATE(float)
HEEDFUL_INSTANTIATE(double)
#undef HEEDFUL_INSTANTIATE

}  // namespace heedful
#endif  // HWY_ONCE
