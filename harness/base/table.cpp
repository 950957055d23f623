#include "harness/base/table.h"

#include <algorithm>
#include <stdexcept>

#include "harness/base/text.h"

namespace attest {
namespace {

constexpr const char* kNoValue = "-";

/// Characters of a text that is UTF-8.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::string space(width - std::min(width, width_of(text)), ' ');
  return right ? space + text : text + space;
}

}  // namespace

void Table::add(std::vector<std::string> cells) {
  if (cells.size() != columns_.size()) throw std::invalid_argument("a row has other cells than its table has columns");
  rows_.push_back(std::move(cells));
}

std::string Table::printed(TableFormat format) const {
  switch (format) {
    case TableFormat::csv: return csv();
    case TableFormat::markdown: return markdown();
    case TableFormat::text: break;
  }
  return text();
}

std::string Table::text() const {
  std::vector<std::vector<std::string>> lines(1);
  for (const Column& column : columns_) lines[0].push_back(column.name);
  for (const auto& row : rows_) {
    lines.emplace_back();
    for (const std::string& cell : row) lines.back().push_back(cell.empty() ? kNoValue : printable_line(cell));
  }
  std::vector<std::size_t> widths;
  for (std::size_t n = 0; n < columns_.size(); ++n) {
    std::size_t width = columns_[n].least_width;
    for (const auto& line : lines) width = std::max(width, width_of(line[n]));
    widths.push_back(width);
  }
  std::string result;
  for (const auto& line : lines) {
    std::string one;
    for (std::size_t n = 0; n < line.size(); ++n) {
      one += (n > 0 ? "  " : "") + padded(line[n], widths[n], columns_[n].number);
    }
    one.erase(one.find_last_not_of(' ') + 1);
    result += one + '\n';
  }
  return result;
}

std::string Table::csv() const {
  std::string result;
  for (std::size_t n = 0; n < columns_.size(); ++n) result += (n > 0 ? "," : "") + csv_cell(columns_[n].name);
  result += '\n';
  for (const auto& row : rows_) {
    for (std::size_t n = 0; n < row.size(); ++n) {
      result += (n > 0 ? "," : "") + (columns_[n].number ? printable_line(row[n]) : csv_cell(row[n]));
    }
    result += '\n';
  }
  return result;
}

std::string Table::markdown() const {
  std::string result = "|", rule = "|";
  for (const Column& column : columns_) {
    result += ' ' + markdown_text(column.name) + " |";
    rule += column.number ? "---:|" : "---|";
  }
  result += '\n' + rule + '\n';
  for (const auto& row : rows_) {
    result += '|';
    for (const std::string& cell : row) result += ' ' + markdown_text(cell.empty() ? kNoValue : cell) + " |";
    result += '\n';
  }
  return result;
}

}  // namespace attest
