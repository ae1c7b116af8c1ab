#include "heedful/report/html.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "heedful/report/claim.h"

namespace heedful {
namespace {

std::vector<Report> two_reports() {
  Report plain{.name = "plain", .title = "a title with <b>& \"quotes\""};
  plain.claims.push_back(claim_equal({"one & one", "a <source>"}, 2, 2));
  plain.claims.push_back(claim_equal({"two", ""}, 2, 3));
  plain.claims.push_back(claim_positive({"three", ""}, 0, {-1, 1}, ""));
  plain.tables.push_back({"table", {"a", "b"}, {{"1", "</script>"}}});
  plain.notes.emplace_back("a note");
  Report drawn{.name = "drawn", .title = "figures"};
  drawn.curves.push_back(
      {"losses", "step", "nats", false, true, {{"a", {1, 2, 3}, {3, 2, 1}}, {"b", {1, 3}, {2, 1}}}});
  MapFigure map;
  map.title = "map </script>";
  map.tokens = {"x", "<y>", "SEP"};
  map.layers = map.heads = 2;
  for (int i = 0; i < 2 * 2 * 9; ++i) {
    map.weights.push_back(static_cast<float>(i) / 36);
    map.effects.push_back(static_cast<float>(i % 5) - 2);
  }
  drawn.maps.push_back(map);
  return {plain, drawn};
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Html, HoldsEverySectionClaimAndTableWithoutAScript) {
  const std::string page = render_html(two_reports(), "quick");
  for (const char* part :
       {"id=\"plain\"", "id=\"drawn\"", "href=\"#plain\"", "one &amp; one", "a &lt;source&gt;",
        "<li class=\"differs\">", "<li class=\"unclear\">", "3, off by 1", "&lt;/script&gt;", "a note"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  EXPECT_LT(page.size(), std::size_t{2} << 20);
}

TEST(Html, IsOneFileAndNoTextOfItEndsAScript) {
  const std::string page = render_html(two_reports(), "quick");
  EXPECT_EQ(count(page, "</script>"), page_has_curves() ? 3U : 2U);
  for (const char* part : {"<link", " src=", "@import", "url("})
    EXPECT_EQ(page.find(part), std::string::npos) << part;
  if (!page_has_curves()) EXPECT_NE(page.find("built without npm"), std::string::npos);
}

// Moves over a map, toggles it, changes layer and head, and leaves what the page then said in its title.
constexpr const char* kVisitor = R"(<script>
const said = [], map = document.querySelector('.map'), canvas = map.querySelector('canvas');
const box = canvas.getBoundingClientRect(), [layer, head] = map.querySelectorAll('select');
const read = () => said.push(map.querySelector('output').textContent);
const over = (i, j) => {
  const cell = (512 - 44) / 3, at = (t) => (44 + (t + 0.5) * cell) / (44 + 3 * cell);
  const clientX = box.left + at(j) * box.width, clientY = box.top + at(i) * box.height;
  canvas.dispatchEvent(new PointerEvent('pointermove', {clientX, clientY}));
};
over(2, 1); read();
layer.selectedIndex = 1; head.selectedIndex = 1; layer.dispatchEvent(new Event('change')); read();
map.querySelector('button').click(); read();
said.push(map.querySelector('button').textContent);
over(0, 2); read();
said.push(document.querySelectorAll('.curve canvas').length + ' curves');
said.push((window.failures || []).length + ' errors');
document.body.setAttribute('data-said', said.join(' | '));
</script>)";
constexpr const char* kWatcher =
    "<script>window.failures = []; addEventListener('error', (e) => failures.push(e.message));"
    "console.error = (m) => failures.push(m);</script>";

class Browser : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v chromium >/dev/null 2>&1") != 0) GTEST_SKIP() << "chromium is not installed";
    folder_ = std::filesystem::temp_directory_path() / fmt::format("heedful-html-{}", getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }
  std::string open(const std::string& page, const std::string& flags) const {
    std::ofstream(folder_ / "page.html") << page;
    const std::string command = fmt::format(
        "timeout 120 chromium --headless --no-sandbox --disable-gpu --user-data-dir='{0}/profile' {1} "
        "'file://{0}/page.html' >'{0}/out' 2>'{0}/err'",
        folder_.string(), flags);
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::ifstream out(folder_ / "out");
    return {std::istreambuf_iterator<char>(out), {}};
  }

  std::filesystem::path folder_;
};

TEST_F(Browser, SlowHoverAndToggleWorkAndNothingFails) {
  std::string page = render_html(two_reports(), "quick");
  page.insert(page.find("<style>"), kWatcher);
  page.insert(page.find("</body>"), kVisitor);
  const std::string seen = open(page, "--dump-dom");
  // Layer 0, head 0, query 2, key 1 is element 7 of 36; layer 1, head 1 begins at 27; its effect is (34 % 5) − 2.
  for (const std::string& part :
       {std::string("query 2 (SEP), key 1 (&lt;y&gt;): weight 0.1944"),
        std::string("weight 0.9444, effect of removal 2.0000"), std::string("show weights"),
        std::string("query 0 (x), key 2 (SEP): hidden, it lies in the future"),
        std::string(page_has_curves() ? "1 curves" : "0 curves"), std::string("0 errors")}) {
    EXPECT_NE(seen.find(part), std::string::npos) << part << "\n" << seen.substr(seen.find("data-said"), 600);
  }
}

TEST_F(Browser, SlowAScreenshotIsTakenOnAPhone) {
  open(render_html(two_reports(), "quick"),
       fmt::format("--window-size=390,844 --screenshot='{}/phone.png'", folder_.string()));
  EXPECT_GT(std::filesystem::file_size(folder_ / "phone.png"), 5000U);
}

}  // namespace
}  // namespace heedful
