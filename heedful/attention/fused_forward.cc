#include <algorithm>
#include <type_traits>

#include "heedful/attention/attention.h"
#include "heedful/attention/fused_forward_task.h"
#include "heedful/attention/small_call.h"
#include "heedful/kernels/simd_targets.h"

#define HWY_TARGET_INCLUDE "heedful/attention/fused_forward.cc"
#include "hwy/foreach_target.h"  // first: it includes this file once a target

#include "heedful/attention/fused_forward_block-inl.h"
#include "heedful/attention/small_forward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heedful::HWY_NAMESPACE {
namespace {

template <class T>
void pack_chunk(const FusedCall<T>& call, const PackTask<T>& task) {
  const Index chunk = task.chunk, end = std::min(chunk + kChunk, call.shape.Tk);
  if (task.key_panels != nullptr) {
    lay_out_keys(task.key_panels + chunk * call.shape.D, call, task.b, task.g, chunk, end);
  }
  if (task.values != nullptr) {
    lay_out_values(task.values + chunk * task.value_stride, task.value_stride, call, task.b, task.g, chunk, end);
  }
}
template <class T>
void run_task(const FusedCall<T>& call, const ForwardTask<T>& task, const AttentionOutputs<T>& outputs,
              ForwardPart part) {
  ForwardBlock<T>(call, task, outputs).run(part);
}
template <class T>
void run_small(const FusedCall<T>& call, KeyRange heads, const AttentionOutputs<T>& outputs) {
  SmallForward<T> small(call, outputs);
  for (Index n = heads.begin; n < heads.end; ++n) small.run(n / call.shape.G, n % call.shape.G);
}

const ForwardTable<float>* forward_table_float() {
  static constexpr ForwardTable<float> kTable{pack_chunk<float>, run_task<float>, run_small<float>,
                                              rows_are_ready<float>};
  return &kTable;
}
const ForwardTable<double>* forward_table_double() {
  static constexpr ForwardTable<double> kTable{pack_chunk<double>, run_task<double>, run_small<double>,
                                               rows_are_ready<double>};
  return &kTable;
}

}  // namespace
}  // namespace heedful::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heedful {
namespace {

HWY_EXPORT(forward_table_float);
HWY_EXPORT(forward_table_double);

template <class T>
const ForwardTable<T>& forward_table() {
  if constexpr (std::is_same_v<T, float>) {
    return *HWY_DYNAMIC_DISPATCH(forward_table_float)();
  } else {
    return *HWY_DYNAMIC_DISPATCH(forward_table_double)();
  }
}

// Rows of a block. Every strip of the block reads the chunk's keys and values from the second cache, the block as a
// whole from memory; and blocks are what threads share out.
constexpr Index kBlockRows = 96;
// Bytes of keys and values laid out beforehand at one time (one head at least).
constexpr Index kPackedBytes = Index{4} << 20;

Index ceil_div(Index a, Index b) {
  return (a + b - 1) / b;
}

// All heads, each cut into blocks of queries.
template <class T>
class Forward {
 public:
  Forward(const Context& context, const FusedCall<T>& call, const AttentionOutputs<T>& outputs)
      : context_(context),
        call_(call),
        outputs_(outputs),
        kernels_(forward_table<T>()),
        heads_(call.shape.B * call.shape.G),
        block_queries_(std::max(Index{1}, kBlockRows / (call.shape.H / call.shape.G))),
        blocks_(ceil_div(call.shape.Tq, block_queries_)),
        chunks_(ceil_div(call.shape.Tk, kChunk)) {}

  void run() {
    if (heads_ * blocks_ < context_.threads() && chunks_ > 1) {
      run_by_chunks();
    } else if (blocks_ > 1) {
      run_packed();
    } else {
      in_order(context_, heads_, [this](Index head) { run_task(head, 0, {}); });
    }
  }

 private:
  // Every block would lay out the same keys; so that is done once, for as many heads at a time as memory allows.
  void run_packed() {
    const auto& [B, Tq, Tk, H, G, D, E] = call_.shape;
    const bool lent = !call_.inputs.key_panels.empty();
    const bool ready = !call_.inputs.v.empty() && kernels_.rows_are_ready(call_.inputs.v);
    const Index key_elements = lent ? 0 : round_up(Tk, kPanel) * D, value_stride = round_up(E, kPanel);
    const Index head_elements = key_elements + (ready ? 0 : Tk * value_stride);
    const Index at_once =
        std::clamp(kPackedBytes / (head_elements * static_cast<Index>(sizeof(T)) + 1), Index{1}, heads_);
    const Memory<T> memory(at_once * head_elements);
    for (Index first = 0; first < heads_; first += at_once) {
      const Index count = std::min(at_once, heads_ - first);
      const auto key_panels = [&](Index n) { return lent ? nullptr : memory.data() + n * head_elements; };
      const auto values = [&](Index n) { return ready ? nullptr : memory.data() + n * head_elements + key_elements; };
      in_order(context_, head_elements == 0 ? 0 : count * chunks_, [&](Index n) {
        const Index head = first + n / chunks_;
        kernels_.pack(call_, {head / call_.shape.G, head % call_.shape.G, n % chunks_ * kChunk,
                              key_panels(n / chunks_), values(n / chunks_), value_stride});
      });
      in_order(context_, count * blocks_, [&](Index n) {
        // Head by head, for the second cache holds one head's keys; and in each the last block first, for where
        // attention is causal it sees most.
        const Index head = n / blocks_, block = blocks_ - 1 - n % blocks_;
        run_task(first + head, block, {key_panels(head), values(head), value_stride});
      });
    }
  }

  // Too few blocks for the threads: the chunks of keys are shared out instead, and joined in ascending order.
  void run_by_chunks() {
    const Index rows = std::min(call_.shape.Tq, block_queries_) * (call_.shape.H / call_.shape.G);
    const Index columns = round_up(call_.shape.E, kPanel), blocks = heads_ * blocks_;
    const Index out_size = chunks_ * rows * columns, block_size = out_size + round_up(2 * chunks_ * rows, kPanel);
    const Memory<T> memory(blocks * block_size);
    const auto partials = [&](Index block) {
      T* out = memory.data() + block * block_size;  // on a vector's boundary, as every row of it
      T* max = out + out_size;
      return RowState<T>{out, max, max + chunks_ * rows};
    };
    in_order(context_, blocks * chunks_, [&](Index n) {
      const Index block = n / chunks_;
      run_task(block / blocks_, block % blocks_, {}, ForwardPart::chunk, partials(block), n % chunks_ * kChunk);
    });
    in_order(context_, blocks, [&](Index block) {
      run_task(block / blocks_, block % blocks_, {}, ForwardPart::join, partials(block));
    });
  }

  void run_task(Index head, Index block, PackedHead<T> packed, ForwardPart part = ForwardPart::whole,
                const RowState<T>& partials = {}, Index chunk = 0) {
    const Index b = head / call_.shape.G, g = head % call_.shape.G;
    const Index first = block * block_queries_, last = std::min(call_.shape.Tq, first + block_queries_);
    if (packed.key_panels == nullptr) packed.key_panels = call_.key_panels(b, g);
    kernels_.run(call_, {b, g, first, last, packed, partials, chunk}, outputs_, part);
  }

  const Context& context_;
  const FusedCall<T>& call_;
  const AttentionOutputs<T>& outputs_;
  const ForwardTable<T>& kernels_;
  const Index heads_, block_queries_, blocks_, chunks_;
};

}  // namespace

template <HeadPath kPath, class T>
void attention_forward_on(const Context& context, const AttentionOutputs<T>& outputs,
                          const AttentionInputs<T>& inputs, const AttentionOptions<T>& options) {
  const FusedCall<T> call(inputs, options);
  check_outputs(call.shape, outputs);
  if (kPath == HeadPath::fitting && is_small(call) && outputs.weights.empty() && outputs.scores.empty()) {
    for_small_heads(context, call, [&](KeyRange heads) { forward_table<T>().small(call, heads, outputs); });
    return;
  }
  Forward<T>(context, call, outputs).run();
}

template <class T>
void attention_forward(const Context& context, const AttentionOutputs<T>& outputs, const AttentionInputs<T>& inputs,
                       const AttentionOptions<T>& options) {
  attention_forward_on<HeadPath::fitting>(context, outputs, inputs, options);
}

#define HEEDFUL_INSTANTIATE(T)                                                                                     \
  template void attention_forward_on<HeadPath::general, T>(const Context&, const AttentionOutputs<T>&,             \
                                                           const AttentionInputs<T>&, const AttentionOptions<T>&); \
  template void attention_forward<T>(const Context&, const AttentionOutputs<T>&, const AttentionInputs<T>&,        \
                                     const AttentionOptions<T>&);
HEEDFUL_INSTANTIATE(float)
HEEDFUL_INSTANTIATE(double)
#undef HEEDFUL_INSTANTIATE

}  // namespace heedful
#endif  // HWY_ONCE
