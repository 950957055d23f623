#include "harness/comparison/error_map.h"

#include <algorithm>
#include <cmath>

namespace attest {
namespace {

std::size_t cells_for(std::int64_t things) {
  return static_cast<std::size_t>(std::clamp<std::int64_t>(things, 0, kMostCells));
}

}  // namespace

ErrorGrid::ErrorGrid(std::int64_t height_, std::int64_t width_)
    : height(height_), width(width_), cells(cells_for(height_), std::vector<double>(cells_for(width_), kNaN)) {}

void ErrorGrid::add(std::int64_t row, std::int64_t column, double error_over_bound) {
  const auto down = static_cast<std::int64_t>(cells.size()), across = static_cast<std::int64_t>(cells.front().size());
  double& cell =
      cells[static_cast<std::size_t>(row * down / height)][static_cast<std::size_t>(column * across / width)];
  // A cell that is NaN takes anything.
  if (!(cell >= error_over_bound)) cell = error_over_bound;
}

ErrorMap map_errors(const Call& call, const Expectation& expectation, const Bounds& bounds,
                    const GuardedOutputs& outputs, const WorstElement& worst) {
  const TensorRow* row = find_row(worst.output);
  const Index4 shape = row ? seen_shape(call, row->id) : Index4{};
  ErrorMap map{worst.output, ErrorGrid(shape[0] * shape[1], shape[2]), worst.index[0], worst.index[1],
               ErrorGrid(shape[2], shape[3])};
  each_result(call, expectation, bounds, outputs,
              [&](const TensorRow& output, const Index4& at, double got, double expected, double bound) {
                if (output.name != worst.output) return;
                const double error = error_in_bounds(got, expected, bound);
                map.rows.add(at[0] * shape[1] + at[1], at[2], error);
                if (at[0] == map.batch && at[1] == map.head) map.elements.add(at[2], at[3], error);
              });
  return map;
}

}  // namespace attest
