#include "heedful/report/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace heedful {
namespace {

using Lines = std::vector<std::string>;

constexpr std::size_t kClaimIndent = 18;  // verdict and gap

std::string padded(std::string text, std::size_t width) {
  text.append(width - std::min(width, text_width(text)), ' ');
  return text;
}

// The number of bytes that the first `width` letters take.
std::size_t bytes_of(std::string_view text, std::size_t width) {
  std::size_t bytes = 0;
  for (std::size_t letters = 0; bytes < text.size(); ++bytes) {
    const bool starts_letter = (static_cast<unsigned char>(text[bytes]) & 0xC0U) != 0x80U;
    if (starts_letter && letters++ == width) break;
  }
  return bytes;
}

// Breaks at spaces, and inside a word only where the word alone is too long.
Lines wrap(std::string_view text, std::size_t width) {
  Lines lines;
  while (text_width(text) > width) {
    const std::size_t fits = bytes_of(text, width);
    const std::size_t space = text.substr(0, fits + 1).rfind(' ');
    const bool at_space = space != std::string_view::npos && space > 0;
    const std::size_t end = at_space ? space : fits;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(at_space ? end + 1 : end);
  }
  lines.emplace_back(text);
  return lines;
}

void append_wrapped(std::string& out, std::string_view first, std::string_view text) {
  std::string indent(first);
  for (const std::string& line : wrap(text, kTextColumns - text_width(first))) {
    out += indent + line + "\n";
    indent.assign(text_width(first), ' ');
  }
}

std::vector<std::size_t> column_widths(const Table& table) {
  constexpr std::size_t kGap = 2;
  std::vector<std::size_t> widths;
  for (const std::string& column : table.columns) widths.push_back(std::max(text_width(column), std::size_t{1}));
  for (const auto& row : table.rows) {
    for (std::size_t c = 0; c < widths.size(); ++c) widths[c] = std::max(widths[c], text_width(row[c]));
  }
  const auto total = [&] {
    std::size_t sum = kGap;
    for (const std::size_t width : widths) sum += width + kGap;
    return sum - kGap;
  };
  while (!widths.empty() && total() > kTextColumns) --*std::ranges::max_element(widths);
  return widths;
}

void append_row(std::string& out, const std::vector<std::string>& row, const std::vector<std::size_t>& widths) {
  std::vector<Lines> cells;
  std::size_t height = 1;
  for (std::size_t c = 0; c < widths.size(); ++c) {
    cells.push_back(wrap(row[c], widths[c]));
    height = std::max(height, cells.back().size());
  }
  for (std::size_t line = 0; line < height; ++line) {
    std::string text = " ";
    for (std::size_t c = 0; c < widths.size(); ++c) {
      text += (c == 0 ? " " : "  ") + padded(line < cells[c].size() ? cells[c][line] : "", widths[c]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  }
}

void append_table(std::string& out, const Table& table) {
  if (!table.title.empty()) append_wrapped(out, "", table.title);
  const auto widths = column_widths(table);
  append_row(out, table.columns, widths);
  for (const auto& row : table.rows) append_row(out, row, widths);
  out += "\n";
}

void append_claim(std::string& out, const Claim& claim) {
  append_wrapped(out, padded(fmt::format("  {}", enum_name(claim.verdict, kVerdictNames)), kClaimIndent),
                 claim.statement.source.empty()
                     ? claim.statement.text
                     : fmt::format("{} ({})", claim.statement.text, claim.statement.source));
  const std::string both = fmt::format("expected {}, measured {}", claim.expected, claim.measured);
  if (text_width(both) + kClaimIndent <= kTextColumns) {
    append_wrapped(out, std::string(kClaimIndent, ' '), both);
    return;
  }
  append_wrapped(out, std::string(kClaimIndent, ' ') + "expected ", claim.expected);
  append_wrapped(out, std::string(kClaimIndent, ' ') + "measured ", claim.measured);
}

}  // namespace

std::size_t text_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string render_text(const Report& report) {
  std::string out;
  append_wrapped(out, "== ", fmt::format("{}: {}", report.name, report.title));
  for (const Claim& claim : report.claims) append_claim(out, claim);
  if (!report.claims.empty()) out += "\n";
  for (const Table& table : report.tables) append_table(out, table);
  for (const std::string& note : report.notes) append_wrapped(out, "note: ", note);
  if (!report.notes.empty()) out += "\n";
  return out;
}

std::string render_verdicts(std::span<const Report> reports) {
  Index counts[3] = {}, failed = 0;
  for (const Report& report : reports) {
    for (const Claim& claim : report.claims) {
      ++counts[static_cast<std::size_t>(claim.verdict)];
      if (claim.failed()) ++failed;
    }
  }
  return fmt::format("{} claims: {} hold, {} differ ({} of them must hold), {} not detectable at this scale",
                     counts[0] + counts[1] + counts[2], counts[0], counts[1], failed, counts[2]);
}

}  // namespace heedful
