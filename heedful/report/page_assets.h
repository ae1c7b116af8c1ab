// The page's style and scripts (web/, and uPlot from npm), put into the library when it is built: cmake/page.cmake.
#ifndef HEEDFUL_REPORT_PAGE_ASSETS_H_
#define HEEDFUL_REPORT_PAGE_ASSETS_H_

#include <string_view>

namespace heedful {

extern const std::string_view kPageStyle, kPageScript;
extern const std::string_view kPlotStyle, kPlotScript;  // empty in a build without npm

}  // namespace heedful

#endif  // HEEDFUL_REPORT_PAGE_ASSETS_H_
