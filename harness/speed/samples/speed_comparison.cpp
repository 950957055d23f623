#include "harness/speed/samples/speed_comparison.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/base/statistics.h"

namespace attest {
namespace {

/// Probabilities of the values 0, 1, ... of the Mann-Whitney statistic: `counts` of each value over all arrangements.
std::vector<double> mann_whitney(std::size_t m, std::size_t n) {
  // Number of partitions with at most m parts of at most n: the Gaussian binomial, by multiplying and dividing.
  std::vector<double> counts(m * n + 1);
  counts[0] = 1;
  for (std::size_t k = 1; k <= m; ++k) {
    for (std::size_t at = counts.size(); at-- > n + k;) counts[at] -= counts[at - n - k];
    for (std::size_t at = k; at < counts.size(); ++at) counts[at] += counts[at - k];
  }
  return counts;
}

/// The same for the signed-rank statistic of n pairs: subsets of 1..n by their sum.
std::vector<double> signed_rank(std::size_t n) {
  std::vector<double> counts(n * (n + 1) / 2 + 1);
  counts[0] = 1;
  for (std::size_t k = 1; k <= n; ++k) {
    for (std::size_t at = counts.size(); at-- > k;) counts[at] += counts[at - k];
  }
  return counts;
}

/// Cuts as many of the sorted differences from both ends as the statistic's tails allow.
RatioInterval interval_of(std::vector<double> differences, const std::vector<double>& counts, double confidence) {
  std::sort(differences.begin(), differences.end());
  const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
  double tail = 0;
  std::size_t cut = 0;
  while (2 * (cut + 1) < differences.size() && 2 * (tail + counts[cut]) / total <= 1 - confidence) {
    tail += counts[cut];
    ++cut;
  }
  // With nothing cut the ends are the extremes, which cover with 1 - 2 P(statistic = 0) at least... of one step
  // further.
  RatioInterval result;
  result.ratio = std::exp(median(differences));
  const std::size_t first = cut == 0 ? 0 : cut - 1;
  result.low = std::exp(differences[first]);
  result.high = std::exp(differences[differences.size() - 1 - first]);
  const double outside = cut == 0 ? 2 * counts[0] / total : 2 * tail / total;
  result.confidence = std::max(0.0, 1 - outside);
  return result;
}

/// Beyond this many samples a side, evenly spaced ones stand for them: the exact counts would leave a double's range.
/// Single ones: medians of neighbours would vary less than the samples of the other side, and the ranks of two sides
/// that vary differently cover less than they say.
constexpr std::size_t kMaxSamples = 40;

std::vector<double> thinned(const std::vector<double>& samples) {
  if (samples.size() <= kMaxSamples) return samples;
  std::vector<double> list;
  for (std::size_t n = 0; n < kMaxSamples; ++n) {
    list.push_back(samples[(2 * n + 1) * samples.size() / (2 * kMaxSamples)]);
  }
  return list;
}

}  // namespace

RatioInterval compare_samples(const std::vector<double>& before_all, const std::vector<double>& now_all,
                              double confidence) {
  const std::vector<double> before = thinned(before_all), now = thinned(now_all);
  std::vector<double> differences;
  for (double a : before) {
    for (double b : now) differences.push_back(std::log(b) - std::log(a));
  }
  return interval_of(std::move(differences), mann_whitney(before.size(), now.size()), confidence);
}

RatioInterval compare_pairs(const std::vector<double>& before, const std::vector<double>& now, double confidence) {
  std::vector<double> logs;
  for (std::size_t n = 0; n < before.size(); ++n) logs.push_back(std::log(now[n]) - std::log(before[n]));
  logs = thinned(logs);
  std::vector<double> averages;
  for (std::size_t a = 0; a < logs.size(); ++a) {
    for (std::size_t b = a; b < logs.size(); ++b) averages.push_back((logs[a] + logs[b]) / 2);
  }
  return interval_of(std::move(averages), signed_rank(logs.size()), confidence);
}

std::string_view name_of(SpeedVerdict verdict) {
  constexpr std::string_view names[] = {"faster", "slower", "same", "ambiguous"};
  return names[static_cast<int>(verdict)];
}

SpeedVerdict judge(const RatioInterval& interval, double margin) {
  if (interval.low > 1 + margin) return SpeedVerdict::slower;
  if (interval.high < 1 / (1 + margin)) return SpeedVerdict::faster;
  if (interval.low >= 1 / (1 + margin) && interval.high <= 1 + margin) return SpeedVerdict::same;
  return SpeedVerdict::ambiguous;
}

}  // namespace attest
