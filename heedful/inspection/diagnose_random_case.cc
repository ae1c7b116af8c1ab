#include "heedful/inspection/diagnose_random_case.h"

#include <array>
#include <cmath>

#include "heedful/inspection/diagnose_rounding.h"

namespace heedful {
namespace {

class Draw {
 public:
  Draw(Random& random, const ProbeOptions& options) : random_(random), options_(options) {}

  AttentionCase draw() {
    AttentionCase c;
    c.name = "random";
    c.declared.type = options_.type;
    const ProbeFeatures& f = options_.features;
    const Index G = whole(1, 3), group = f.groups ? whole(1, 3) : 1, B = whole(1, 3);
    const Index Tk = whole(1, one_in(8) ? 70 : 12), Tq = flip() ? Tk : whole(1, Tk);
    const Index D = f.rotary ? 2 * whole(1, 6) : whole(1, 12), E = flip() ? D : whole(1, 12);
    // Magnitudes from tiny to saturated.
    const double size = std::exp2(static_cast<double>(whole(-6, one_in(6) ? 5 : 1)));
    c.q = normals({B, G * group, Tq, D}, size);
    c.k = normals({B, G, Tk, D}, 1);
    c.v = normals({B, G, Tk, E}, std::exp2(static_cast<double>(whole(-3, 3))));
    if (f.gradients) c.dout = normals({B, G * group, Tq, E}, 1);
    order(c);
    padding(c);
    content(c);
    if (f.scale && flip()) c.declared.scale = std::exp2(static_cast<double>(whole(-4, 0)));
    if (f.softcap && one_in(3)) c.declared.softcap = static_cast<double>(whole(1, 30));
    if (f.rotary && flip()) rotary(c);
    return c;
  }

 private:
  Index whole(Index low, Index high) { return random_.integer(low, high + 1); }
  bool flip() { return whole(0, 1) == 1; }
  bool one_in(Index n) { return whole(1, n) == 1; }

  Tensor<double, 4> normals(const Extents<4>& extents, double size) {
    Tensor<double, 4> x(extents);
    for (double& value : x) {
      value = diagnosis::round_to(diagnosis::rounding_of(options_.type), size * random_.normal());
    }
    return x;
  }

  void order(AttentionCase& c) {
    const ProbeFeatures& f = options_.features;
    DeclaredAttention& d = c.declared;
    d.alignment = options_.alignment;
    d.causal = f.causal && flip();
    if (f.window && one_in(3)) d.window = whole(1, c.Tk());
    if (!f.offsets || !one_in(4)) return;
    d.alignment = Alignment::offsets;
    for (Index b = 0; b < c.B(); ++b) d.query_offsets.push_back(whole(0, c.Tk() - c.Tq()));
  }

  // At least the first key is seen by causal rows; a window is left alone, lest it hold padding only.
  void padding(AttentionCase& c) {
    const ProbeFeatures& f = options_.features;
    if (!f.padding || (c.declared.window > 0 && !f.empty_rows) || !flip()) return;
    for (Index b = 0; b < c.B(); ++b) c.declared.key_lengths.push_back(whole(f.empty_rows ? 0 : 1, c.Tk()));
    if (!f.left_padding || !flip()) return;
    c.declared.left_padded = f.empty_rows || !c.declared.causal;
  }

  void content(AttentionCase& c) {
    const ProbeFeatures& f = options_.features;
    if (f.bias && one_in(3)) c.bias = normals({flip() ? c.B() : 1, flip() ? c.H() : 1, c.Tq(), c.Tk()}, 2);
    if (f.mask && f.empty_rows && one_in(3)) {
      c.keep = Tensor<bool, 4>({flip() ? c.B() : 1, flip() ? c.H() : 1, c.Tq(), c.Tk()});
      for (bool& kept : c.keep) kept = random_.uniform() < 0.7;
    }
    if (f.documents && f.empty_rows && one_in(4)) {
      for (Index at = 0; at < c.B() * c.Tq(); ++at) c.declared.query_documents.push_back(whole(0, 1));
      for (Index at = 0; at < c.B() * c.Tk(); ++at) c.declared.key_documents.push_back(whole(0, 1));
    }
  }

  void rotary(AttentionCase& c) {
    c.declared.rotary = {options_.layout, flip() ? 10000.0 : 500000.0, 0};
    for (Index b = 0; b < c.B(); ++b) {
      const Index start = whole(0, 40);
      for (Index j = 0; j < c.Tk(); ++j) c.declared.key_positions.push_back(start + j);
      for (Index i = 0; i < c.Tq(); ++i) c.declared.query_positions.push_back(start + c.Tk() - c.Tq() + i);
    }
  }

  Random& random_;
  const ProbeOptions& options_;
};

}  // namespace

AttentionCase random_case(Random& random, const ProbeOptions& options) {
  return Draw(random, options).draw();
}

}  // namespace heedful
