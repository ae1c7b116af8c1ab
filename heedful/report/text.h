// A report for a terminal: claims with their verdicts, then tables, then notes; curves and maps are left to the page.
#ifndef HEEDFUL_REPORT_TEXT_H_
#define HEEDFUL_REPORT_TEXT_H_

#include <span>
#include <string>
#include <string_view>

#include "heedful/report/report.h"

namespace heedful {

inline constexpr std::size_t kTextColumns = 100;

// Every line fits kTextColumns: long text is wrapped, and the widest cells of a table that is too wide.
std::string render_text(const Report& report);

// One line: how many claims hold, differ, cannot be told.
std::string render_verdicts(std::span<const Report> reports);

// Columns that `text` takes up in a terminal, for text in alphabets of one column a letter.
std::size_t text_width(std::string_view text);

}  // namespace heedful

#endif  // HEEDFUL_REPORT_TEXT_H_
