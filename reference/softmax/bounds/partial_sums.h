// How sums round, were all roundings independent: by the squares of their partial sums. For the second tier.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

namespace attest {

inline double square(double x) { return x * x; }

/// Four vectors of 512 bits.
inline constexpr std::size_t kMostLanes = 64;

/// Squares of the partial sums where every lanes-th term goes into the same accumulator, and those are added at last.
inline double squares_in_lanes(std::span<const double> terms, std::size_t lanes) {
  double squares = 0, joined = 0;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    double sum = 0;
    for (std::size_t at = lane; at < terms.size(); at += lanes) {
      sum += terms[at];
      squares += sum * sum;
    }
    joined += sum;
    squares += joined * joined;
  }
  return squares;
}

/// Partial sums of `terms`: the sum of their squares, in this order, in as many accumulators as vectors have lanes, or
/// expected of a random order, whichever is largest. An implementation adds in an order of its own, and terms that
/// cancel in pairs do so in one order only.
struct PartialSums {
  double squares = 0, largest = 0;

  explicit PartialSums(std::span<const double> terms) {
    double sum = 0, of_squares = 0;
    for (double term : terms) {
      sum += term;
      squares += sum * sum;
      of_squares += term * term;
      largest = std::max({largest, std::fabs(sum), std::fabs(term)});
    }
    const auto n = static_cast<double>(terms.size());
    squares = std::max(squares, (n + 1) * (of_squares / 6 + sum * sum / 3));
    for (std::size_t lanes = 2; lanes <= kMostLanes && lanes < terms.size(); lanes *= 2) {
      squares = std::max(squares, squares_in_lanes(terms, lanes));
    }
  }

  /// What terms lose that are too small for the sum: each at most itself, and at most half a unit of the sum.
  double lost(std::span<const double> terms, double u) const {
    double total = 0;
    for (double term : terms) {
      if (std::fabs(term) < 2 * u * largest) total += std::min(std::fabs(term), u * largest);
    }
    return total;
  }
};

/// Whether more than a quarter of the terms that are not 0 are repetitions of others.
inline bool mostly_repeated(std::vector<double> terms) {
  std::erase(terms, 0.0);
  constexpr std::size_t kFew = 8;
  if (terms.size() <= kFew) return false;
  std::sort(terms.begin(), terms.end());
  const auto distinct = std::unique(terms.begin(), terms.end()) - terms.begin();
  return static_cast<std::size_t>(distinct) * 4 < 3 * terms.size();
}

/// Whether the terms lie so close to each other that the sum's last unit rounds all of them alike: `largest` is its
/// largest partial sum. A few units of distance, and their roundings no longer know of each other.
inline bool rounded_alike(std::span<const double> terms, double largest, double u) {
  constexpr double kUnits = 8;
  const auto n = static_cast<double>(terms.size());
  const double mean = std::accumulate(terms.begin(), terms.end(), 0.0) / n;
  double distance = 0;
  for (const double term : terms) distance += std::fabs(term - mean);
  return distance / n < kUnits * 2 * u * largest;
}

}  // namespace attest
