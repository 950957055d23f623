// Classes of values: of each size and option those that kernels are likely to treat alike, cut where they change their
// ways. A feature is one question about a call (how many keys, which layout), its classes are the answers.
//
// Rows of the table of options hold their features (option.h); harness/cases/coverage.h counts which classes, and
// which pairs of classes of different features, a suite meets.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reference/call/problem.h"

namespace attest {

/// Whole numbers from `first` to `last`, both included.
struct Range {
  static constexpr std::int64_t kOpen = std::numeric_limits<std::int64_t>::max();
  std::int64_t first = 0, last = kOpen;
  bool holds(std::int64_t n) const { return first <= n && n <= last; }
  bool operator==(const Range&) const = default;
};

struct Feature {
  std::string name;                  ///< "keys"; with the others of the table unique
  std::vector<std::string> classes;  ///< "keys=33..63": each with its whole name
  /// The one class that the problem is in; nullopt where the question can't be put (no mask, no window).
  std::function<std::optional<std::size_t>(const Problem&)> class_of;
  /// Gives the problem a value of that class, `draw` chooses which; whoever calls makes a case of what comes out and
  /// looks whether the class holds: other options may have to give way (fit_to_sizes, canonical).
  std::function<void(Problem&, std::size_t which, std::uint64_t draw)> meet;
  /// Of a number: what it is (nullopt as above), and the range of each class.
  std::function<std::optional<std::int64_t>(const Problem&)> value{};
  std::vector<Range> ranges{};
  /// Gives the problem this number, in whichever class it lies.
  std::function<void(Problem&, std::int64_t)> set{};
};

/// Ranges that begin at `cuts`, which rise; the last one is open.
std::vector<Range> ranges_from(std::span<const std::int64_t> cuts);
std::string range_text(const Range& range);
/// A number of the range: near its beginning, where cases are cheap, in half of the draws, and anywhere in it by
/// magnitude in the others. Open ranges reach as far as indices of 18 bits, and 16 times their beginning.
std::int64_t number_in(const Range& range, std::uint64_t draw);
/// A positive number in [low, high), by magnitude; 0 < low < high.
double real_in(double low, double high, std::uint64_t draw);

/// A number cut into ranges. `set` gives the problem the number.
Feature size_feature(std::string name, std::span<const std::int64_t> cuts,
                     std::function<std::optional<std::int64_t>(const Problem&)> value,
                     std::function<void(Problem&, std::int64_t)> set);

/// One of a few: the classes "name=answer".
Feature named_feature(std::string name, const std::vector<std::string>& answers,
                      std::function<std::optional<std::size_t>(const Problem&)> class_of,
                      std::function<void(Problem&, std::size_t, std::uint64_t)> meet);

/// Yes, or no class at all.
Feature flag_feature(std::string name, std::function<bool(const Problem&)> holds,
                     std::function<void(Problem&, std::uint64_t)> meet);

/// How a number ends, by which tails of tiles and of vectors are cut: the place in kEnds.
inline constexpr std::array kEnds = {"64n", "64n+1", "64n-1", "16n+1", "16n-1", "16n", "8n", "4n", "odd or 2n"};
std::size_t end_of(std::int64_t n);
/// The nearest number with this end that lies in the range; nullopt where none does.
std::optional<std::int64_t> nearest_with_end(std::int64_t n, std::size_t end, const Range& within);

}  // namespace attest
