#include "reference/options/feature.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace attest {

std::vector<Range> ranges_from(std::span<const std::int64_t> cuts) {
  std::vector<Range> ranges;
  for (std::size_t n = 0; n < cuts.size(); ++n) {
    ranges.push_back({cuts[n], n + 1 < cuts.size() ? cuts[n + 1] - 1 : Range::kOpen});
  }
  return ranges;
}

std::string range_text(const Range& range) {
  if (range.last == range.first) return std::to_string(range.first);
  return std::to_string(range.first) + ".." + (range.last == Range::kOpen ? "" : std::to_string(range.last));
}

std::int64_t number_in(const Range& range, std::uint64_t draw) {
  constexpr std::int64_t kFarthest = std::int64_t{1} << 18;
  const std::int64_t last = range.last == Range::kOpen ? std::max(kFarthest, range.first * 16) : range.last;
  const auto pick = [](std::int64_t from, std::int64_t to, std::uint64_t n) {
    return from + static_cast<std::int64_t>(n % (static_cast<std::uint64_t>(to - from) + 1));
  };
  if (draw % 2 == 0) return pick(range.first, std::min(last, range.first + 8), draw / 2);
  // As many binary digits as any other number of the range may have.
  const auto fewest = static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(range.first))),
             most = static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(last)));
  const std::int64_t digits = pick(fewest, most, draw / 2 % 64);
  const std::int64_t smallest = digits == 0 ? 0 : std::int64_t{1} << (digits - 1),
                     largest = digits == 0 ? 0 : 2 * smallest - 1;
  return pick(std::max(range.first, smallest), std::min(last, largest), draw / 128);
}

double real_in(double low, double high, std::uint64_t draw) {
  int least = 0, most = 0;
  std::frexp(low, &least);
  std::frexp(high, &most);
  const int exponent = least + static_cast<int>(draw % static_cast<std::uint64_t>(most - least + 1));
  // Few binary digits in half of the draws, which are easier to read.
  const std::uint64_t steps = draw / 64 % 2 == 0 ? 16 : std::uint64_t{1} << 22;
  const double part = static_cast<double>(draw / 128 % steps) / static_cast<double>(steps);
  const double number = std::ldexp(0.5 + part / 2, exponent);
  return number >= low && number < high ? number : low;
}

Feature size_feature(std::string name, std::span<const std::int64_t> cuts,
                     std::function<std::optional<std::int64_t>(const Problem&)> value,
                     std::function<void(Problem&, std::int64_t)> set) {
  Feature feature;
  feature.ranges = ranges_from(cuts);
  for (const Range& range : feature.ranges) feature.classes.push_back(name + "=" + range_text(range));
  feature.class_of = [ranges = feature.ranges, value](const Problem& p) -> std::optional<std::size_t> {
    const std::optional<std::int64_t> n = value(p);
    for (std::size_t c = 0; n && c < ranges.size(); ++c) {
      if (ranges[c].holds(*n)) return c;
    }
    return std::nullopt;
  };
  feature.meet = [ranges = feature.ranges, set](Problem& p, std::size_t which, std::uint64_t draw) {
    set(p, number_in(ranges[which], draw));
  };
  feature.value = std::move(value);
  feature.set = std::move(set);
  feature.name = std::move(name);
  return feature;
}

Feature named_feature(std::string name, const std::vector<std::string>& answers,
                      std::function<std::optional<std::size_t>(const Problem&)> class_of,
                      std::function<void(Problem&, std::size_t, std::uint64_t)> meet) {
  Feature feature;
  for (const std::string& answer : answers) feature.classes.push_back(name + "=" + answer);
  feature.name = std::move(name);
  feature.class_of = std::move(class_of);
  feature.meet = std::move(meet);
  return feature;
}

Feature flag_feature(std::string name, std::function<bool(const Problem&)> holds,
                     std::function<void(Problem&, std::uint64_t)> meet) {
  Feature feature;
  feature.classes = {name};
  feature.name = std::move(name);
  feature.class_of = [holds = std::move(holds)](const Problem& p) -> std::optional<std::size_t> {
    if (!holds(p)) return std::nullopt;
    return 0;
  };
  feature.meet = [meet = std::move(meet)](Problem& p, std::size_t, std::uint64_t draw) { meet(p, draw); };
  return feature;
}

std::size_t end_of(std::int64_t n) {
  switch (n % 64) {
    case 0: return 0;
    case 1: return 1;
    case 63: return 2;
    default: break;
  }
  switch (n % 16) {
    case 0: return 5;
    case 1: return 3;
    case 15: return 4;
    case 8: return 6;
    default: return n % 4 == 0 ? 7 : 8;
  }
}

std::optional<std::int64_t> nearest_with_end(std::int64_t n, std::size_t end, const Range& within) {
  for (std::int64_t step = 0; step <= 64; ++step) {
    for (std::int64_t near : {n + step, n - step}) {
      if (near >= 0 && within.holds(near) && end_of(near) == end) return near;
    }
  }
  return std::nullopt;
}

}  // namespace attest
