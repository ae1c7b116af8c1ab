// Reverse-mode differentiation of scalars, for models of a few hundred parameters: every operation is recorded, and
// gradients() walks the record backwards. Slow and plain; the tutorial trains its small mistaken models with it, so
// that no backward pass has to be written for a mistake.
#ifndef HEEDFUL_INSPECTION_DIAGNOSE_TAPE_H_
#define HEEDFUL_INSPECTION_DIAGNOSE_TAPE_H_

#include <cmath>
#include <cstdint>
#include <vector>

namespace heedful::diagnosis {

class Tape;

struct Recorded {
  Tape* tape;
  std::uint32_t at;

  double value() const;
};

class Tape {
 public:
  Recorded input(double value) { return push(value, 0, 0, 0, 0); }
  Recorded push(double value, std::uint32_t a, double da, std::uint32_t b, double db) {
    nodes_.push_back({value, da, db, a, b});
    return {this, static_cast<std::uint32_t>(nodes_.size() - 1)};
  }
  double value(std::uint32_t at) const { return nodes_[at].value; }
  void clear() { nodes_.clear(); }

  // The derivative of `of` by every recorded number.
  std::vector<double> gradients(Recorded of) const {
    std::vector<double> gradient(nodes_.size());
    gradient[of.at] = 1;
    for (std::size_t at = of.at + 1; at-- > 0;) {
      if (gradient[at] == 0) continue;
      gradient[nodes_[at].a] += gradient[at] * nodes_[at].da;
      gradient[nodes_[at].b] += gradient[at] * nodes_[at].db;
    }
    return gradient;
  }

 private:
  struct Node {
    double value, da, db;  // derivatives by the nodes a and b, 0 where there is none
    std::uint32_t a, b;
  };
  std::vector<Node> nodes_;
};

inline double Recorded::value() const {
  return tape->value(at);
}

inline Recorded operator+(Recorded a, Recorded b) {
  return a.tape->push(a.value() + b.value(), a.at, 1, b.at, 1);
}
inline Recorded operator-(Recorded a, Recorded b) {
  return a.tape->push(a.value() - b.value(), a.at, 1, b.at, -1);
}
inline Recorded operator*(Recorded a, Recorded b) {
  return a.tape->push(a.value() * b.value(), a.at, b.value(), b.at, a.value());
}
inline Recorded operator/(Recorded a, Recorded b) {
  const double quotient = a.value() / b.value();
  return a.tape->push(quotient, a.at, 1 / b.value(), b.at, -quotient / b.value());
}
inline Recorded operator*(Recorded a, double b) {
  return a.tape->push(a.value() * b, a.at, b, a.at, 0);
}
inline Recorded exp(Recorded a) {
  const double e = std::exp(a.value());
  return a.tape->push(e, a.at, e, a.at, 0);
}
inline Recorded log(Recorded a) {
  return a.tape->push(std::log(a.value()), a.at, 1 / a.value(), a.at, 0);
}

}  // namespace heedful::diagnosis

#endif  // HEEDFUL_INSPECTION_DIAGNOSE_TAPE_H_
