// Where a wrong result is wrong: error over bound across one output, in as many cells as a page can show.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/comparison/compare.h"

namespace attest {

/// The largest error over bound in each cell of a grid that is laid evenly over `height` x `width` things. A cell in
/// which nothing was compared is NaN; infinity is where the classes differ.
struct ErrorGrid {
  std::int64_t height = 0, width = 0;      ///< what the grid covers
  std::vector<std::vector<double>> cells;  ///< at most kMostCells by kMostCells, none beyond height and width

  ErrorGrid() = default;
  ErrorGrid(std::int64_t height, std::int64_t width);
  /// One thing of those covered, at these places.
  void add(std::int64_t row, std::int64_t column, double error_over_bound);
};

/// Bounds what one failure takes in a file to some kilobytes.
inline constexpr std::int64_t kMostCells = 32;

struct ErrorMap {
  std::string output;                ///< that of the worst element
  ErrorGrid rows;                    ///< every head of the batch, one after another, by row_word()
  std::int64_t batch = 0, head = 0;  ///< those of the worst element
  ErrorGrid elements;                ///< of that head: rows by the output's last axis
};

/// Of the output in which `worst` lies. Only rows that the expectation covers are there.
ErrorMap map_errors(const Call& call, const Expectation& expectation, const Bounds& bounds,
                    const GuardedOutputs& outputs, const WorstElement& worst);

}  // namespace attest
