#include "heedful/report/json.h"

#include <nlohmann/json.hpp>

namespace heedful {
namespace {

using Json = nlohmann::ordered_json;

Json claim_json(const Claim& claim) {
  return {{"claim", claim.statement.text},
          {"source", claim.statement.source},
          {"verdict", enum_name(claim.verdict, kVerdictNames)},
          {"expected", claim.expected},
          {"measured", claim.measured},
          {"must_hold", claim.statement.must_hold}};
}

Json curve_figure_json(const CurveFigure& figure) {
  Json curves = Json::array();
  for (const Curve& curve : figure.curves) curves.push_back({{"name", curve.name}, {"x", curve.x}, {"y", curve.y}});
  return {{"title", figure.title}, {"x_label", figure.x_label}, {"y_label", figure.y_label},
          {"log_x", figure.log_x}, {"log_y", figure.log_y},     {"curves", curves}};
}

Json map_json(const MapFigure& map) {
  return {{"title", map.title},
          {"tokens", map.tokens},
          {"layers", map.layers},
          {"heads", map.heads},
          {"weights", map.weights},
          {"effects", map.effects},
          {"effect_label", map.effect_label}};
}

}  // namespace

Json reports_json(std::span<const Report> reports) {
  Json experiments = Json::array();
  for (const Report& report : reports) {
    Json claims = Json::array(), tables = Json::array(), curves = Json::array(), maps = Json::array();
    for (const Claim& claim : report.claims) claims.push_back(claim_json(claim));
    for (const Table& table : report.tables) {
      tables.push_back({{"title", table.title}, {"columns", table.columns}, {"rows", table.rows}});
    }
    for (const CurveFigure& figure : report.curves) curves.push_back(curve_figure_json(figure));
    for (const MapFigure& map : report.maps) maps.push_back(map_json(map));
    experiments.push_back({{"name", report.name},
                           {"title", report.title},
                           {"file", report.file},
                           {"seconds", report.seconds},
                           {"claims", claims},
                           {"tables", tables},
                           {"curves", curves},
                           {"maps", maps},
                           {"notes", report.notes}});
  }
  return {{"experiments", experiments}};
}

}  // namespace heedful
