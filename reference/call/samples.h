// Elements of results whose errors are also compared with their standard deviations: enough of them to notice what all
// share, few enough to cost little.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "reference/call/tensor_table.h"

namespace attest {

/// Errors this many standard deviations large don't happen to independent roundings.
inline constexpr double kSuspectDeviations = 8;

struct SampledElement {
  TensorId result;
  std::size_t place;  ///< in the list of the result's values
};

inline constexpr std::int64_t kSampledColumns = 4;

/// Columns of the n-th sampled row: all of few, else some that move on from row to row.
inline std::vector<std::int64_t> sampled_columns(std::size_t n, std::int64_t columns) {
  std::vector<std::int64_t> list(static_cast<std::size_t>(std::min(kSampledColumns, columns)));
  std::iota(list.begin(), list.end(), 0);
  if (columns <= kSampledColumns) return list;
  for (std::int64_t& c : list) c = (c * columns / kSampledColumns + static_cast<std::int64_t>(n)) % columns;
  return list;
}

}  // namespace attest
