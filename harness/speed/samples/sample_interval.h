// How far the median of a few samples may lie from the one of many.
#pragma once

#include <vector>

namespace attest {

struct SampleInterval {
  double low = 0, high = 0;
  double confidence = 0;  ///< that it covers; less than asked for where samples are too few
};

/// From order statistics, whatever the distribution: the k-th smallest and the k-th largest sample enclose the median
/// unless fewer than k of n fair coins show heads, or fewer than k tails. All zero without samples.
SampleInterval interval_of_median(std::vector<double> samples, double confidence);

}  // namespace attest
