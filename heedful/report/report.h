// A report: what was claimed, what was measured, and whether it holds, with the tables and figures that show it.
// Plain data; the renderers (text.h, json.h, html.h) decide how it looks.
#ifndef HEEDFUL_REPORT_REPORT_H_
#define HEEDFUL_REPORT_REPORT_H_

#include <string>
#include <vector>

#include "heedful/core/enum_names.h"
#include "heedful/core/view.h"

namespace heedful {

enum class Verdict {
  holds,
  differs,         // `measured` says by how much
  not_detectable,  // the measurement is too coarse to tell
};
inline constexpr EnumName<Verdict> kVerdictNames[] = {
    {Verdict::holds, "holds"}, {Verdict::differs, "differs"}, {Verdict::not_detectable, "not detectable"}};

// What is claimed, and by whom.
struct Statement {
  std::string text;
  std::string source;     // "article, §scale", "G14.02", "arXiv:2002.04745"
  bool must_hold = true;  // false where chance, rounding amplified by training, or a clock has a say
};

struct Claim {
  Statement statement;
  std::string expected, measured;
  Verdict verdict = Verdict::differs;

  bool failed() const { return statement.must_hold && verdict == Verdict::differs; }
};

struct Table {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  // as many cells as there are columns
};

struct Curve {
  std::string name;
  std::vector<double> x, y;  // of equal length, x ascending
};

struct CurveFigure {
  std::string title, x_label, y_label;
  bool log_x = false, log_y = false;
  std::vector<Curve> curves;
};

// Attention maps of one sequence. Both arrays are [layers, heads, T, T], rows are queries, flattened.
struct MapFigure {
  std::string title;
  std::vector<std::string> tokens;  // [T]
  Index layers = 0, heads = 0;
  std::vector<float> weights;
  std::vector<float> effects;  // of removing that key from that head, in nats; empty where not measured
  std::string effect_label;
};

struct Report {
  std::string name, title;
  std::vector<Claim> claims = {};
  std::vector<Table> tables = {};
  std::vector<CurveFigure> curves = {};
  std::vector<MapFigure> maps = {};
  std::vector<std::string> notes = {};
  std::string file = {};  // the source file that measures it
  double seconds = 0;     // it took

  bool failed() const;
};

}  // namespace heedful

#endif  // HEEDFUL_REPORT_REPORT_H_
