#include "heedful/inspection/diagnose_probes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "heedful/core/error.h"
#include "heedful/core/random.h"
#include "heedful/inspection/diagnose_rounding.h"

namespace heedful {
namespace {

struct Sizes {
  Index B, H, G, Tq, Tk, D, E;
};

// Builds one probe; what the features do not allow is left out of it.
class Builder {
 public:
  Builder(std::string_view name, const ProbeOptions& options, const Sizes& sizes)
      : options_(options), features_(options.features), random_(options.seed + std::hash<std::string_view>{}(name)) {
    probe_.name = name;
    probe_.declared.type = options.type;
    const Index G = features_.groups ? sizes.G : sizes.H;
    probe_.q = normals(sizes.B, sizes.H, sizes.Tq, sizes.D);
    probe_.k = normals(sizes.B, G, sizes.Tk, sizes.D);
    probe_.v = normals(sizes.B, G, sizes.Tk, sizes.E);
    if (features_.gradients) probe_.dout = normals(sizes.B, sizes.H, sizes.Tq, sizes.E);
  }

  Builder& causal() { return causal(options_.alignment); }
  Builder& causal(Alignment alignment) {
    probe_.declared.causal = features_.causal;
    probe_.declared.alignment = alignment;
    return *this;
  }
  Builder& lengths(std::vector<Index> lengths) {
    if (!features_.padding) return *this;
    const bool has_empty = std::ranges::find(lengths, 0) != lengths.end();
    if (has_empty && !features_.empty_rows) std::ranges::replace(lengths, 0, 1);
    probe_.declared.key_lengths = std::move(lengths);
    return *this;
  }
  Builder& left() {
    probe_.declared.left_padded = features_.left_padding;
    return *this;
  }
  Builder& window(Index width) {
    if (features_.window) probe_.declared.window = width;
    return *this;
  }
  Builder& offsets(std::vector<Index> offsets) {
    if (!features_.offsets) return causal();
    probe_.declared.query_offsets = std::move(offsets);
    return causal(Alignment::offsets);
  }
  Builder& scale(double scale) {
    if (features_.scale) probe_.declared.scale = scale;
    return *this;
  }
  Builder& softcap(double softcap) {
    if (features_.softcap) probe_.declared.softcap = softcap;
    return *this;
  }
  Builder& without_gradients() {  // where a wrong backward pass would overflow, and say nothing more
    probe_.dout = {};
    return *this;
  }
  Builder& bias() {
    if (features_.bias) probe_.bias = normals(probe_.B(), probe_.H(), probe_.Tq(), probe_.Tk());
    return *this;
  }
  // Every head's own pattern; a row always keeps the key that stands opposite.
  Builder& mask() {
    if (!features_.mask) return *this;
    probe_.keep = Tensor<bool, 4>({probe_.B(), probe_.H(), probe_.Tq(), probe_.Tk()});
    for (Index b = 0; b < probe_.B(); ++b) {
      for (Index h = 0; h < probe_.H(); ++h) {
        for (Index i = 0; i < probe_.Tq(); ++i) {
          for (Index j = 0; j < probe_.Tk(); ++j) {
            probe_.keep(b, h, i, j) = j == i * probe_.Tk() / probe_.Tq() || random_.uniform() < 0.6;
          }
        }
      }
    }
    return *this;
  }
  // Two documents a sequence, cut elsewhere in each.
  Builder& documents() {
    if (!features_.documents) return *this;
    for (Index b = 0; b < probe_.B(); ++b) {
      for (Index i = 0; i < probe_.Tq(); ++i) probe_.declared.query_documents.push_back(2 * i > probe_.Tq() + b);
      for (Index j = 0; j < probe_.Tk(); ++j) probe_.declared.key_documents.push_back(2 * j > probe_.Tk() + b);
    }
    return *this;
  }
  // Positions that count from the first real key on and leave a gap, wider in each sequence: a mere shift would not
  // show. Queries end where keys end.
  Builder& rotary(Index offset) {
    if (!features_.rotary) return *this;
    DeclaredAttention& declared = probe_.declared;
    declared.rotary = {options_.layout, 40000, 0};
    for (Index b = 0; b < probe_.B(); ++b) {
      const Index padding = declared.key_lengths.empty() || !declared.left_padded
                                ? 0
                                : probe_.Tk() - declared.key_lengths[static_cast<std::size_t>(b)];
      const auto place = [&](Index j) { return std::max<Index>(j - padding, 0) + (2 * j > probe_.Tk() ? b + 1 : 0); };
      for (Index j = 0; j < probe_.Tk(); ++j) declared.key_positions.push_back(offset + place(j));
      for (Index i = 0; i < probe_.Tq(); ++i) {
        declared.query_positions.push_back(offset + place(i + probe_.Tk() - probe_.Tq()));
      }
    }
    return *this;
  }
  // Multiplies the queries, and lets later keys score higher for the first query heads.
  Builder& large(double factor, double rise) {
    for (double& x : probe_.q) x *= factor;
    for (Index b = 0; b < probe_.B(); ++b) {
      for (Index g = 0; g < probe_.G(); ++g) {
        for (Index j = 0; j < probe_.Tk(); ++j) probe_.k(b, g, j, 0) += rise * static_cast<double>(j);
      }
      for (Index h = 0; h < probe_.H(); ++h) {
        for (Index i = 0; i < probe_.Tq(); ++i) probe_.q(b, h, i, 0) = std::abs(probe_.q(b, h, i, 0));
      }
    }
    return *this;
  }
  // Sequence 0: padded keys score far above the rest and hold far values. Sequence 1: every visible key scores far
  // below 0, padded keys near 0.
  Builder& extremes() {
    const double far = options_.type == DataType::f16 ? 3e4 : 4e5;
    const double far_value = options_.type == DataType::f16 ? 3e4 : 1e5;
    for (Index g = 0; g < probe_.G(); ++g) {
      for (Index j = 0; j < probe_.Tk(); ++j) {
        const bool is_low = is_padded(1, j), is_high = is_padded(0, j);
        probe_.k(0, g, j, 0) = is_high ? far : 0;
        probe_.k(1, g, j, 0) = is_low ? 0 : -far - far / 64 * static_cast<double>(j);
        for (Index e = 0; e < probe_.E(); ++e) {
          if (is_high) probe_.v(0, g, j, e) = far_value;
          if (is_low) probe_.v(1, g, j, e) = far_value;
        }
      }
    }
    for (Index b = 0; b < probe_.B(); ++b) {
      for (Index h = 0; h < probe_.H(); ++h) {
        for (Index i = 0; i < probe_.Tq(); ++i) probe_.q(b, h, i, 0) = i % 2 == 0 ? 1 : 0.125;
      }
    }
    return *this;
  }
  Builder& hidden_nan() {
    for (Index b = 0; b < probe_.B(); ++b) {
      for (Index j = 0; j < probe_.Tk(); ++j) {
        if (!is_padded(b, j)) continue;
        for (Index g = 0; g < probe_.G(); ++g) {
          std::fill_n(&probe_.k(b, g, j, 0), probe_.D(), std::numeric_limits<double>::quiet_NaN());
          std::fill_n(&probe_.v(b, g, j, 0), probe_.E(), std::numeric_limits<double>::quiet_NaN());
        }
      }
    }
    return *this;
  }

  AttentionCase build() {
    const diagnosis::Rounding& type = diagnosis::rounding_of(options_.type);
    for (Tensor<double, 4>* x : {&probe_.q, &probe_.k, &probe_.v, &probe_.bias, &probe_.dout}) {
      for (double& value : *x) value = diagnosis::round_to(type, value);
    }
    return std::move(probe_);
  }

 private:
  bool is_padded(Index b, Index j) const {
    const std::vector<Index>& lengths = probe_.declared.key_lengths;
    if (lengths.empty()) return false;
    const Index length = lengths[static_cast<std::size_t>(b)];
    return probe_.declared.left_padded ? j < probe_.Tk() - length : j >= length;
  }

  Tensor<double, 4> normals(Index B, Index H, Index T, Index width) {
    Tensor<double, 4> x({B, H, T, width});
    for (double& value : x) value = random_.normal();
    return x;
  }

  ProbeOptions options_;
  ProbeFeatures features_;
  Random random_;
  AttentionCase probe_;
};

struct FeatureName {
  std::string_view name;
  bool ProbeFeatures::* member;
};
constexpr std::array<FeatureName, 15> kFeatures{{{"causal", &ProbeFeatures::causal},
                                                 {"padding", &ProbeFeatures::padding},
                                                 {"left_padding", &ProbeFeatures::left_padding},
                                                 {"groups", &ProbeFeatures::groups},
                                                 {"window", &ProbeFeatures::window},
                                                 {"offsets", &ProbeFeatures::offsets},
                                                 {"empty_rows", &ProbeFeatures::empty_rows},
                                                 {"scale", &ProbeFeatures::scale},
                                                 {"softcap", &ProbeFeatures::softcap},
                                                 {"bias", &ProbeFeatures::bias},
                                                 {"mask", &ProbeFeatures::mask},
                                                 {"documents", &ProbeFeatures::documents},
                                                 {"rotary", &ProbeFeatures::rotary},
                                                 {"gradients", &ProbeFeatures::gradients},
                                                 {"hidden_nan", &ProbeFeatures::hidden_nan}}};

}  // namespace

ProbeFeatures ProbeFeatures::all() {
  ProbeFeatures features;
  for (const FeatureName& feature : kFeatures) features.*feature.member = feature.name != "hidden_nan";
  return features;
}

ProbeFeatures parse_features(std::string_view list) {
  ProbeFeatures features;
  for (const FeatureName& feature : kFeatures) features.*feature.member = false;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view name = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    if (name == "all") {
      const bool hidden_nan = features.hidden_nan;
      features = ProbeFeatures::all();
      features.hidden_nan = hidden_nan;
      continue;
    }
    const auto found = std::ranges::find(kFeatures, name, &FeatureName::name);
    if (found == kFeatures.end()) {
      std::string known = "all";
      for (const FeatureName& feature : kFeatures) known += fmt::format(", {}", feature.name);
      fail("diagnose", "features: expected some of {}, got '{}'", known, name);
    }
    features.*found->member = true;
  }
  return features;
}

std::vector<AttentionCase> standard_probes(const ProbeOptions& options) {
  const ProbeFeatures& f = options.features;
  std::vector<AttentionCase> probes;
  const auto probe = [&](std::string_view name, const Sizes& sizes) { return Builder(name, options, sizes); };
  probes.push_back(probe("grouped", {2, 6, 3, 5, 11, 8, 8}).causal().lengths({11, 8}).build());
  probes.push_back(probe("wide", {2, 4, 2, 3, 7, 6, 12}).causal().lengths({7, 5}).scale(0.75).build());
  probes.push_back(probe("square", {2, 2, 2, 6, 6, 4, 4}).causal().lengths({6, 4}).build());
  probes.push_back(
      probe("large", {2, 4, 1, 5, 9, 4, 6}).large(60, 0.125).without_gradients().causal().lengths({9, 7}).build());
  probes.push_back(probe("long", {1, 2, 1, 2, 301, 4, 3}).large(1, 0.03125).build());
  if (f.padding) {
    probes.push_back(probe("hidden", {2, 2, 1, 3, 6, 4, 5}).lengths({4, 3}).extremes().without_gradients().build());
    probes.push_back(probe("empty", {3, 2, 1, 4, 6, 4, 12}).lengths({4, 0, 6}).build());
  }
  if (f.padding && f.hidden_nan) {
    probes.push_back(probe("hidden_nan", {2, 2, 1, 3, 6, 4, 5}).lengths({4, 3}).hidden_nan().build());
  }
  if (f.offsets) probes.push_back(probe("offsets", {2, 2, 1, 3, 9, 4, 5}).offsets({5, 2}).build());
  if (f.window) {
    probes.push_back(probe("window", {1, 2, 1, 7, 12, 6, 5}).causal().window(5).build());
  }
  if (f.left_padding) probes.push_back(probe("left", {2, 2, 1, 3, 7, 4, 6}).causal().lengths({7, 4}).left().build());
  if (f.mask || f.bias || f.softcap || f.documents) {
    probes.push_back(probe("masked", {2, 2, 1, 5, 8, 6, 4}).lengths({8, 7}).mask().bias().softcap(1.5).build());
    probes.push_back(probe("documents", {2, 2, 1, 6, 8, 6, 4}).documents().bias().build());
  }
  if (f.rotary) {
    probes.push_back(probe("rotary", {2, 4, 2, 6, 6, 8, 8}).causal().lengths({6, 4}).left().rotary(0).build());
    probes.push_back(probe("cached", {2, 4, 2, 2, 9, 8, 6}).causal().rotary(3).build());
  }
  return probes;
}

AttentionCase square_case(const ProbeOptions& options) {
  return Builder("usual", options, {1, 2, 2, 4, 4, 8, 8}).causal(Alignment::square).build();
}

}  // namespace heedful
