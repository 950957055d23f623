// The cosines and sines by which rope rotates, as data: position p and pair r of features have the angle
// p * base^(-2r/R).
//
// Computed by + - * / and sqrt alone, so that the bits are the same on every machine (fill.h). The kernel reads the
// tables: how well they follow the angles is nobody's error.
#pragma once

#include <cstdint>
#include <vector>

namespace attest {

class RotationTables {
 public:
  /// `dims` is R, an even number; `base` at least 1.
  RotationTables(double base, std::int64_t dims);

  double cos(std::int64_t position, std::int64_t pair) const;
  double sin(std::int64_t position, std::int64_t pair) const;

 private:
  std::vector<double> frequencies_;  ///< base^(-2r/R)
};

}  // namespace attest
