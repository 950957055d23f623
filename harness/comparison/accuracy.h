// How accurate a result is, whatever its bounds allow: its errors in units in the last place and relative to its
// values. What is declared may be coarse, and then a result within its bounds isn't accurate.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/arithmetic/arithmetic.h"
#include "reference/base/types.h"

namespace attest {

/// The distance between neighbours of the type at the magnitude of `value`, which is finite: 2^(e + 1 - p) for
/// 2^e <= |value| < 2^(e+1) and p bits of precision. 0 and subnormal numbers have that of the smallest normal number,
/// and what lies beyond the range that of the largest.
inline double unit_in_last_place(double value, DType type) {
  constexpr std::uint64_t kExponent = 0x7ff0'0000'0000'0000;
  const double magnitude = std::clamp(std::fabs(value), smallest_normal(type), largest_of(type));
  return 2 * unit_roundoff(type) * std::bit_cast<double>(std::bit_cast<std::uint64_t>(magnitude) & kExponent);
}

/// Half of the elements, and 99% of them, are no larger than these.
struct Spread {
  double median = 0, p99 = 0, largest = 0;

  bool operator==(const Spread&) const = default;
};

/// Counts sizes in the buckets of a logarithmic scale: what it takes doesn't depend on their number.
class SpreadCounter {
 public:
  /// Not negative, and no NaN.
  void add(double size) {
    ++elements_;
    largest_ = std::max(largest_, size);
    const auto place = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(size) >> kShift) - kLowest;
    ++counts_[static_cast<std::size_t>(std::clamp<std::int64_t>(place, 0, kBuckets - 1))];
  }
  std::int64_t elements() const { return elements_; }
  /// The median and the 99th percentile are cut to five bits: at most 1/16 too small. Below 2^-64 they are 0.
  Spread spread() const;

 private:
  static constexpr int kBits = 4, kShift = 52 - kBits;  ///< 16 buckets from a power of 2 to the next
  static constexpr std::int64_t kLowest = std::int64_t{1023 - 64} << kBits;  ///< 2^-64
  static constexpr std::int64_t kBuckets = std::int64_t{128} << kBits;       ///< up to 2^64

  std::int64_t elements_ = 0;
  double largest_ = 0;
  std::array<std::uint32_t, kBuckets> counts_{};
};

/// Of one result.
struct Accuracy {
  std::string output;
  std::int64_t compared = 0;
  std::int64_t unproven = 0;  ///< of those compared: their bounds are infinite or as large as the values
  std::int64_t elements = 0;  ///< of those compared: finite, as expected, within a finite bound; the rest is about them
  Spread ulps;                ///< |error| in units in the last place of the expected value
  Spread relative;            ///< |error| / |expected|, over what isn't expected to be 0
  double normwise = 0;        ///< root of the sum of squared errors over that of squared expected values

  /// Most of its elements would pass with 0 or twice their value as well.
  bool proves_little() const { return 2 * unproven > compared; }
  bool operator==(const Accuracy&) const = default;
};

/// "0.5 (1.25)": the median and, in brackets, the largest.
std::string text_of(const Spread& spread);
/// "o: errors in units in the last place 0.5 median, 1.2 at 99%, 3 at most; relative 1e-07 median, ...; normwise 1e-07"
std::string text_of(const Accuracy& accuracy);
/// Names the results of which little is proved; empty where there are none.
std::string little_proved(const std::vector<Accuracy>& results);
/// Of `o`, in units in the last place; nothing where no element can tell.
std::optional<Spread> ulps_of_output(const std::vector<Accuracy>& results);

/// The accuracy of the elements that were added so far.
class AccuracyCounter {
 public:
  explicit AccuracyCounter(DType type) : type_(type) {}

  void add(double got, double expected, double bound) {
    ++compared_;
    const double size = std::fabs(expected);
    unproven_ += bound == kInfinity || (std::isfinite(expected) && bound > 0 && !(bound < size));
    const double error = std::fabs(got - expected);
    if (bound == kInfinity || !std::isfinite(error)) return;
    ulps_.add(error / unit_in_last_place(expected, type_));
    if (size > 0) relative_.add(error / size);
    errors_ += error * error;
    values_ += size * size;
  }
  std::int64_t unproven() const { return unproven_; }
  Accuracy accuracy(std::string output) const;

 private:
  DType type_;
  std::int64_t compared_ = 0, unproven_ = 0;
  SpreadCounter ulps_, relative_;
  double errors_ = 0, values_ = 0;
};

}  // namespace attest
