#include "harness/trace/stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

namespace attest {
namespace {

constexpr std::size_t kShownColumns = 16, kShownRows = 32, kNarrowest = 7;
constexpr double kWithExponent = 1e7;

std::string cell(double value, bool whole, int digits) {
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  if (std::fabs(value) >= kWithExponent) return fmt::format("{:.{}e}", value, digits);
  return fmt::format("{:.{}f}", value + 0.0, whole ? 0 : digits);  // + 0.0: no minus before a zero
}

double sum_of(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

std::vector<double> column_sums_of(const Stage& stage) {
  std::vector<double> sums;
  for (const std::vector<double>& row : stage.values) {
    sums.resize(std::max(sums.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) sums[c] += row[c];
  }
  return sums;
}

nlohmann::json row_json(const std::vector<double>& row, bool whole) {
  nlohmann::json line = nlohmann::json::array();
  for (double value : row) {
    if (!std::isfinite(value))
      line.push_back(std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    else if (whole)
      line.push_back(static_cast<std::int64_t>(value));
    else
      line.push_back(value);
  }
  return line;
}

/// The cells of one printed line; `sum` is the line's own.
std::vector<std::string> line_of(const Stage& stage, const std::vector<double>& row, bool with_sum, int digits) {
  std::vector<std::string> cells;
  for (std::size_t c = 0; c < std::min(row.size(), kShownColumns); ++c)
    cells.push_back(cell(row[c], stage.whole, digits));
  if (row.size() > kShownColumns) cells.emplace_back("...");
  if (with_sum) cells.push_back(cell(sum_of(row), stage.whole, digits));
  return cells;
}

}  // namespace

void print_stage(const Stage& stage, int digits) {
  std::vector<std::string> names(
      stage.rows.begin(), stage.rows.begin() + static_cast<std::ptrdiff_t>(std::min(stage.rows.size(), kShownRows)));
  std::vector<std::vector<std::string>> lines;
  std::size_t columns = 0;
  bool ragged = false;
  for (const std::vector<double>& row : stage.values) {
    ragged |= &row != &stage.values.front() && row.size() != columns;
    columns = std::max(columns, row.size());
    if (lines.size() < names.size()) lines.push_back(line_of(stage, row, stage.row_sums, digits));
  }
  if (stage.rows.size() > names.size()) {
    names.emplace_back("...");
    lines.emplace_back();
  }
  if (stage.column_sums) {
    names.emplace_back("sum");
    lines.push_back(line_of(stage, column_sums_of(stage), false, digits));
  }
  std::vector<std::string> header;
  if (!stage.columns.empty()) {
    header.assign(stage.columns.begin(),
                  stage.columns.begin() + static_cast<std::ptrdiff_t>(std::min(stage.columns.size(), kShownColumns)));
    if (stage.columns.size() > kShownColumns) header.emplace_back("...");
    if (stage.row_sums) header.emplace_back("sum");
  }

  std::size_t name_width = 0, width = kNarrowest;
  for (const std::string& name : names) name_width = std::max(name_width, name.size());
  for (const std::string& name : header) width = std::max(width, name.size());
  for (const auto& line : lines) {
    for (const std::string& text : line) width = std::max(width, text.size());
  }
  fmt::print(
      "\n{}  [{}]\n", stage.title,
      ragged ? fmt::format("{} lists", stage.values.size()) : fmt::format("{} x {}", stage.values.size(), columns));
  const auto print_line = [&](const std::string& name, const std::vector<std::string>& cells) {
    std::string line = fmt::format("  {:<{}}", name, name_width);
    for (const std::string& text : cells) line += fmt::format("  {:>{}}", text, width);
    fmt::print("{}\n", line);
  };
  if (!header.empty()) print_line("", header);
  for (std::size_t r = 0; r < lines.size(); ++r) print_line(names[r], lines[r]);
}

nlohmann::ordered_json stage_json(const Stage& stage) {
  nlohmann::ordered_json json;
  json["title"] = stage.title;
  json["rows"] = stage.rows;
  if (!stage.columns.empty()) json["columns"] = stage.columns;
  nlohmann::json values = nlohmann::json::array();
  for (const std::vector<double>& row : stage.values) values.push_back(row_json(row, stage.whole));
  json["values"] = values;
  if (stage.row_sums) {
    std::vector<double> sums;
    for (const std::vector<double>& row : stage.values) sums.push_back(sum_of(row));
    json["row_sums"] = row_json(sums, stage.whole);
  }
  if (stage.column_sums) json["column_sums"] = row_json(column_sums_of(stage), stage.whole);
  return json;
}

std::vector<std::string> numbered(const std::string& what, std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t n = 0; n < count; ++n) names.push_back(what + " " + std::to_string(n));
  return names;
}

}  // namespace attest
