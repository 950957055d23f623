// Cost against a size: one case line for each value, and the exponent with which time grows.
#pragma once

#include <string>
#include <vector>

#include "harness/speed/files/swept_curves.h"

namespace attest {

struct BenchCase;

/// "seq=128..32768": doubling from the first value, and the last one. What stands before the numbers stays, as in
/// "seq=1x128..32768".
struct Sweep {
  std::string key, before;
  std::vector<long> values;

  /// The line with this value of the key, in place of what it says about it.
  std::string line_with(const std::string& line, long value) const;
  /// `lines` without those that differ from an earlier one in this key alone: they would be the same curve.
  std::vector<std::string> curves(const std::vector<std::string>& lines) const;
};

/// Throws UserError.
Sweep parse_sweep(const std::string& text);

/// A point of a curve; both above 0.
struct Cost {
  double size, seconds;
};

/// The slope of the straight line through the points' logarithms (least squares); 0 for fewer than two sizes.
double fitted_exponent(const std::vector<Cost>& costs);

/// `results`: of the cases of the sweep of these lines; some may be missing.
SweptCurves swept_curves(const Sweep& sweep, const std::vector<std::string>& lines,
                         const std::vector<BenchCase>& results);

}  // namespace attest
