// One stage of a trace: a matrix with names, printed and written as JSON alike.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace attest {

struct Stage {
  std::string name;                         ///< its key in JSON
  std::string title;                        ///< what stands above it
  std::vector<std::string> rows, columns;   ///< names; without column names no line of them is printed
  std::vector<std::vector<double>> values;  ///< rows of a list of positions differ in length
  bool whole = false;                       ///< counts, positions, 0 and 1: printed without decimals
  bool row_sums = false, column_sums = false;
};

/// Title and size, then a line for each row: two spaces before the name and before each number. Numbers of 1e7 and more
/// are printed with an exponent. Columns beyond the 16th and rows beyond the 32nd are left out, which "..." says; JSON
/// has them all.
void print_stage(const Stage& stage, int digits);

nlohmann::ordered_json stage_json(const Stage& stage);

/// "row 0", "row 1", ...
std::vector<std::string> numbered(const std::string& what, std::size_t count);

}  // namespace attest
