// Reports as one JSON document:
//     {"experiments": [{"name", "title", "file", "seconds", "claims": [{"claim", "source", "verdict", "expected",
//      "measured", "must_hold"}], "tables": [{"title", "columns", "rows"}], "curves": […], "maps": […],
//      "notes": […]}]}
// A number that is not finite is written as null.
#ifndef HEEDFUL_REPORT_JSON_H_
#define HEEDFUL_REPORT_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <span>

#include "heedful/report/report.h"

namespace heedful {

nlohmann::ordered_json reports_json(std::span<const Report> reports);

}  // namespace heedful

#endif  // HEEDFUL_REPORT_JSON_H_
