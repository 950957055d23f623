// The bounds of one query row.
#pragma once

#include <vector>

namespace attest {

/// Absolute bounds for one query row. Infinity where the arithmetic may overflow: such an element proves nothing.
struct RowBound {
  std::vector<double> output;  ///< Dv entries
  double lse = 0, max = 0, sum = 0;
  /// Lk entries each, only where the call asks for that output.
  std::vector<double> raw, capped, biased, weights;

  // The terms, for `attest explain`, at the output column asked for.
  struct Terms {
    double score = 0;   ///< largest E_j: absolute error of a biased score
    double weight = 0;  ///< W: sum of the weights' errors
    double centred = 0, products = 0, division = 0, underflow = 0, storage = 0;
  } terms;
};

}  // namespace attest
