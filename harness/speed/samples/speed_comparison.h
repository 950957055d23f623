// Whether one set of timings is slower than another, with an interval for the ratio.
//
// No distribution is assumed. The interval comes from ranks: of all differences of logarithms between the two sides
// (Hodges and Lehmann's estimate with the Mann-Whitney statistic's exact distribution), or, where samples were taken in
// turn, of the pairs' differences (Walsh averages with the signed-rank statistic's). Compare Hollander, Wolfe and
// Chicken, Nonparametric Statistical Methods, chapters 3 and 4.
#pragma once

#include <string_view>
#include <vector>

namespace attest {

struct RatioInterval {
  double ratio = 1, low = 1, high = 1;  ///< new over old
  double confidence = 0;                ///< that the interval covers; less than asked for where samples are too few
};

/// Independent samples of times, all above 0; neither list is empty.
RatioInterval compare_samples(const std::vector<double>& before, const std::vector<double>& now, double confidence);

/// before[i] and now[i] were measured next to each other. Not empty, equally long.
RatioInterval compare_pairs(const std::vector<double>& before, const std::vector<double>& now, double confidence);

enum class SpeedVerdict { faster, slower, same, ambiguous };
std::string_view name_of(SpeedVerdict verdict);

/// `margin` 0.05: 5% either way count as the same. slower and faster need the whole interval beyond it.
SpeedVerdict judge(const RatioInterval& interval, double margin);

}  // namespace attest
