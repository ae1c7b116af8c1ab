// Reports as one self-contained page: no network, no other file. Contents, claims with verdicts, tables and notes are
// plain HTML and need no script; curves (uPlot) and attention maps (a canvas) are drawn by the page's own. A build
// without npm has no uPlot: such a page says so where its curves would be.
#ifndef HEEDFUL_REPORT_HTML_H_
#define HEEDFUL_REPORT_HTML_H_

#include <span>
#include <string>
#include <string_view>

#include "heedful/report/report.h"

namespace heedful {

// `subtitle` says what was run: "quick, seed 0".
std::string render_html(std::span<const Report> reports, std::string_view subtitle);

// Whether this build can draw curves.
bool page_has_curves();

}  // namespace heedful

#endif  // HEEDFUL_REPORT_HTML_H_
