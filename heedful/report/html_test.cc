#include "heedful/report/html.h"

#include <gtest/gtest.h>
#include <filesystem>

#include "heedful/report/claim.h"
#include "heedful/report/test_browser.h"

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
  EXPECT_EQ(page.find("built without npm") == std::string::npos, page_has_curves());
}

// Moves over a map, toggles it, changes layer and head, and leaves what the page then said in its title.
constexpr const char* kVisitor =
    R"(const said = [], map = document.querySelector('.map'), canvas = map.querySelector('canvas');
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
return said;)";

class InBrowser : public testing::Test {
 protected:
  void SetUp() override {
    if (!Browser::installed()) GTEST_SKIP() << "chromium is not installed";
  }
  Browser browser_;
};

TEST_F(InBrowser, SlowHoverAndToggleWorkAndNothingFails) {
  const std::string page = render_html(two_reports(), "quick");
  const std::string seen = browser_.visit(page, kVisitor);
  // Layer 0, head 0, query 2, key 1 is element 7 of 36; layer 1, head 1 begins at 27; its effect is (34 % 5) − 2.
  for (const std::string& part :
       {std::string("query 2 (SEP), key 1 (&lt;y&gt;): weight 0.1944"),
        std::string("weight 0.9444, effect of removal 2.0000"), std::string("show weights"),
        std::string("query 0 (x), key 2 (SEP): hidden, it lies in the future"),
        std::string(page_has_curves() ? "1 curves" : "0 curves"), std::string("0 errors")}) {
    EXPECT_NE(seen.find(part), std::string::npos) << part << "\n" << seen;
  }
}

TEST_F(InBrowser, SlowAFailingScriptIsSeen) {
  EXPECT_NE(browser_.visit(render_html(two_reports(), "quick"), "setTimeout(nothing); return []").find("1 errors"),
            std::string::npos);
}

TEST_F(InBrowser, SlowAScreenshotIsTakenOnAPhone) {
  EXPECT_GT(std::filesystem::file_size(browser_.screenshot(render_html(two_reports(), "quick"), 390, 844)), 5000U);
}

}  // namespace
}  // namespace heedful
