#include "heedful/report/html.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "heedful/report/page_assets.h"
#include "heedful/report/text.h"

namespace heedful {
namespace {

using Json = nlohmann::ordered_json;

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// JSON inside a script element may not hold the text that ends one.
std::string script_safe(const Json& json) {
  std::string out;
  for (const char c : json.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    out += c == '<' ? std::string("\\u003c") : std::string(1, c);
  }
  return out;
}

std::string verdict_class(Verdict verdict) {
  return verdict == Verdict::not_detectable ? "unclear" : std::string(enum_name(verdict, kVerdictNames));
}

void append_claims(std::string& out, const Report& report) {
  out += "<ul class=\"claims\">\n";
  for (const Claim& claim : report.claims) {
    out += fmt::format(
        "<li class=\"{}\"><span class=\"verdict\">{}</span><div><p>{}{}</p><dl><dt>expected</dt><dd>{}</dd>"
        "<dt>measured</dt><dd>{}</dd></dl></div></li>\n",
        verdict_class(claim.verdict), enum_name(claim.verdict, kVerdictNames), escaped(claim.statement.text),
        claim.statement.source.empty() ? "" : fmt::format(" <cite>{}</cite>", escaped(claim.statement.source)),
        escaped(claim.expected), escaped(claim.measured));
  }
  out += "</ul>\n";
}

void append_row(std::string& out, const std::vector<std::string>& cells, const char* tag) {
  out += "<tr>";
  for (const std::string& cell : cells) out += fmt::format("<{0}>{1}</{0}>", tag, escaped(cell));
  out += "</tr>\n";
}

void append_table(std::string& out, const Table& table) {
  out += fmt::format("<figure><figcaption>{}</figcaption><div class=\"scroll\"><table><thead>", escaped(table.title));
  append_row(out, table.columns, "th");
  out += "</thead><tbody>\n";
  for (const auto& row : table.rows) append_row(out, row, "td");
  out += "</tbody></table></div></figure>\n";
}

// Figures as the page's script reads them; five digits are more than a screen shows.
Json rounded(const std::vector<float>& values) {
  Json array = Json::array();
  for (const float value : values) array.push_back(std::round(static_cast<double>(value) * 1e5) / 1e5);
  return array;
}

Json curve_data(const CurveFigure& figure) {
  Json curves = Json::array();
  for (const Curve& curve : figure.curves) curves.push_back({{"name", curve.name}, {"x", curve.x}, {"y", curve.y}});
  return {{"x_label", figure.x_label},
          {"y_label", figure.y_label},
          {"log_x", figure.log_x},
          {"log_y", figure.log_y},
          {"curves", curves}};
}

void append_curves(std::string& out, Json& data, const CurveFigure& figure) {
  out += fmt::format("<figure><figcaption>{}</figcaption>", escaped(figure.title));
  if (page_has_curves()) {
    out += fmt::format("<div class=\"curve\" data-curve=\"{}\"></div>", data["curves"].size());
    data["curves"].push_back(curve_data(figure));
  } else {
    out +=
        "<p class=\"missing\">This program was built without npm and draws no curves; --json holds their "
        "numbers.</p>";
  }
  out += "</figure>\n";
}

void append_map(std::string& out, Json& data, const MapFigure& map) {
  out += fmt::format("<figure class=\"map\" data-map=\"{}\"><figcaption>{}</figcaption></figure>\n",
                     data["maps"].size(), escaped(map.title));
  data["maps"].push_back({{"tokens", map.tokens},
                          {"layers", map.layers},
                          {"heads", map.heads},
                          {"weights", rounded(map.weights)},
                          {"effects", rounded(map.effects)},
                          {"effect_label", map.effect_label}});
}

void append_contents(std::string& out, std::span<const Report> reports) {
  out += "<nav><h2>Contents</h2><ol>\n";
  for (const Report& report : reports) {
    Index counts[3] = {};
    for (const Claim& claim : report.claims) ++counts[static_cast<std::size_t>(claim.verdict)];
    out += fmt::format("<li><a href=\"#{0}\">{0}</a> <span>{1}</span> <b class=\"holds\">{2} hold</b>", report.name,
                       escaped(report.title), counts[0]);
    if (counts[1] > 0) out += fmt::format(" <b class=\"differs\">{} differ</b>", counts[1]);
    if (counts[2] > 0) out += fmt::format(" <b class=\"unclear\">{} not detectable</b>", counts[2]);
    out += "</li>\n";
  }
  out += "</ol></nav>\n";
}

void append_section(std::string& out, Json& data, const Report& report) {
  out +=
      fmt::format("<section id=\"{0}\"><h2>{0}</h2><p class=\"title\">{1}</p>\n", report.name, escaped(report.title));
  append_claims(out, report);
  for (const Table& table : report.tables) append_table(out, table);
  for (const CurveFigure& figure : report.curves) append_curves(out, data, figure);
  for (const MapFigure& map : report.maps) append_map(out, data, map);
  for (const std::string& note : report.notes) out += fmt::format("<p class=\"note\">{}</p>\n", escaped(note));
  out += fmt::format("<p class=\"file\">Measured by <code>{}</code> in {:.1f} s.</p></section>\n",
                     escaped(report.file), report.seconds);
}

}  // namespace

bool page_has_curves() {
  return !kPlotScript.empty();
}

std::string render_html(std::span<const Report> reports, std::string_view subtitle) {
  Json data = {{"curves", Json::array()}, {"maps", Json::array()}};
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
      "<meta name=\"color-scheme\" content=\"light dark\"><title>heedful lab</title>\n"
      "<style>{}\n{}</style></head>\n<body><header><h1>heedful lab</h1><p>{}</p><p "
      "class=\"summary\">{}</p></header>\n",
      kPlotStyle, kPageStyle, escaped(subtitle), escaped(render_verdicts(reports)));
  append_contents(out, reports);
  out += "<main>\n";
  for (const Report& report : reports) append_section(out, data, report);
  out += fmt::format("</main>\n<script type=\"application/json\" id=\"data\">{}</script>\n", script_safe(data));
  if (page_has_curves()) out += fmt::format("<script>{}</script>\n", kPlotScript);
  out += fmt::format("<script>{}</script></body></html>\n", kPageScript);
  return out;
}

}  // namespace heedful
