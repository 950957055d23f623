// A table of results: for people in a terminal, as Markdown for a page, as CSV for a spreadsheet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "reference/base/names.h"

namespace attest {

enum class TableFormat : std::uint8_t { text, csv, markdown };

template <>
inline constexpr auto kNames<TableFormat> = name_table("text", "csv", "markdown");

/// Cells are text that is not trusted: each format escapes what would mean something in it.
class Table {
 public:
  struct Column {
    std::string name;
    bool number = false;          ///< to the right, and in CSV as it is
    std::size_t least_width = 0;  ///< in text
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// A cell for each column; an empty one is what nobody can tell. Throws std::invalid_argument for another number.
  void add(std::vector<std::string> cells);
  std::size_t rows() const { return rows_.size(); }

  /// Lines, each with its end; the first are the names of the columns. Text has "-" in empty cells and columns as wide
  /// as what stands in them; CSV follows RFC 4180 with line feeds, and hides formulas (csv_cell).
  std::string printed(TableFormat format) const;

 private:
  std::string text() const;
  std::string csv() const;
  std::string markdown() const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace attest
