// Cases that are in wanted classes: the way from the table of options to a case line.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "harness/cases/coverage.h"
#include "harness/cases/random.h"

namespace attest {

/// What a case may cost.
struct CaseLimits {
  double multiply_adds = 4e6;       ///< of random_case_cost
  double bytes = 64.0 * (1 << 20);  ///< of storage
};

/// The most of sizes that a generated suite meets in one case: a pair of classes that takes more counts as impossible.
inline constexpr CaseLimits kSuiteLimits = {2e8, 256.0 * (1 << 20)};

/// Whether the operator has the option that the class is about, with such a value.
bool has_class(Op op, const TableClass& one);

/// A small case that is in all these classes, drawn by `random`; nullopt when none was found within `limits`.
std::optional<Problem> case_in(std::span<const std::size_t> classes, const CaseLimits& limits, Random& random,
                               int tries = 48);

/// `problem` moved into one more class and still in `kept`; nullopt where that is no case or costs too much.
std::optional<Problem> moved_into(const Problem& problem, std::size_t one, std::span<const std::size_t> kept,
                                  const CaseLimits& limits, Random& random);

/// A case in these classes that is in as many classes and pairs besides as it finds that `met` has not: up to `steps`
/// classes are tried. Its cost stays beside that of the smallest found.
std::optional<Problem> covering_case(std::span<const std::size_t> classes, const Coverage& met,
                                     const CaseLimits& limits, int steps, Random& random);

}  // namespace attest
