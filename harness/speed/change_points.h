// Where a series of measurements changed its level.
//
// E-divisive (Matteson and James, A nonparametric approach for multiple change point analysis of multivariate data,
// JASA 2014): the split whose two sides lie furthest apart in energy distance, held against the same for random orders
// of the series; then each side by itself. No distribution is assumed, single outliers hardly move it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace attest {

struct ChangePointSettings {
  double significance = 0.01;  ///< how often a series without a change may seem to have one
  std::size_t least = 3;       ///< values between two changes, and to the ends; 2 or more
  std::size_t orders = 999;    ///< random ones that a split is held against
  std::uint64_t seed = 1;      ///< of these: the same series has the same changes
};

struct ChangePoint {
  std::size_t at;  ///< the first value after the change
  double p;        ///< share of random orders with a split at least as clear
};

/// In order. Values are compared as they are: of times, take logarithms for changes by a factor.
std::vector<ChangePoint> change_points(const std::vector<double>& values, const ChangePointSettings& settings = {});

}  // namespace attest
