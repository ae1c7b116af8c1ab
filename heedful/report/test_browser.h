// Test support: opens a page in headless Chromium and asks it things. Tests that need it are skipped, and say so,
// where there is none.
#ifndef HEEDFUL_REPORT_TEST_BROWSER_H_
#define HEEDFUL_REPORT_TEST_BROWSER_H_

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace heedful {

class Browser {
 public:
  Browser() { std::filesystem::create_directories(folder_); }
  ~Browser() { std::filesystem::remove_all(folder_); }
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  static bool installed() { return std::system("command -v chromium >/dev/null 2>&1") == 0; }

  // Opens the page without a network, runs `script` (the body of a function that returns a list of texts) once it is
  // loaded, and returns "text | text | … | N errors", N counting uncaught exceptions, what went to console.error, and
  // every request for anything but the page itself.
  std::string visit(std::string page, const std::string& script) const {
    page.insert(page.find("<style>"), R"(<script>window.failures = [];
addEventListener('error', (e) => failures.push(e.message), true);
addEventListener('unhandledrejection', (e) => failures.push(String(e.reason)));
console.error = (...what) => failures.push(what.join(' '));</script>)");
    page.insert(page.rfind("</body>"),
                "<script>addEventListener('load', () => { let said = [];\ntry { said = (() => {" + script +
                    R"(})(); } catch (e) { failures.push(String(e)); }
for (const entry of performance.getEntriesByType('resource')) failures.push('asked for ' + entry.name);
setTimeout(() => { const text = [...said, failures.length + ' errors', ...failures].join(' | ');
const end = document.createElement('pre'); end.textContent = 'SAID ' + text + ' DIAS';
document.body.append(end); }, 50); });</script>)");
    open(page, "--virtual-time-budget=5000 --dump-dom");
    std::ifstream out(folder_ / "out");
    const std::string seen{std::istreambuf_iterator<char>(out), {}};
    const auto begin = seen.rfind("<pre>SAID "), end = seen.rfind(" DIAS</pre>");
    EXPECT_TRUE(begin != std::string::npos && end != std::string::npos && begin < end) << seen.substr(0, 2000);
    return begin < end && end != std::string::npos ? seen.substr(begin + 10, end - begin - 10) : "";
  }

  // A picture of the page in a window of this size.
  std::filesystem::path screenshot(const std::string& page, int width, int height) const {
    const auto picture = folder_ / "page.png";
    open(page, fmt::format("--window-size={},{} --screenshot='{}'", width, height, picture.string()));
    return picture;
  }

 private:
  void open(const std::string& page, const std::string& flags) const {
    std::ofstream(folder_ / "page.html") << page;
    const std::string command = fmt::format(
        "timeout 120 chromium --headless --no-sandbox --disable-gpu --proxy-server=127.0.0.1:1 "
        "--user-data-dir='{0}/profile' {1} 'file://{0}/page.html' >'{0}/out' 2>'{0}/err'",
        folder_.string(), flags);
    EXPECT_EQ(std::system(command.c_str()), 0);
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() /
      fmt::format("heedful-browser-{}-{}", testing::UnitTest::GetInstance()->current_test_info()->name(), getpid());
};

}  // namespace heedful

#endif  // HEEDFUL_REPORT_TEST_BROWSER_H_
