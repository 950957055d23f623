// Conditions over a call, for mistakes that only show where one or two of them hold.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/cases/coverage.h"
#include "harness/cases/random.h"

namespace attest::mutants {

struct Condition {
  std::string text;               ///< "keys=33..63", "dim >= 37"
  const Option* option;           ///< whose value it asks for
  std::vector<std::size_t> ways;  ///< classes in which it may hold, for those who look for a case
  std::function<bool(const Problem&)> holds;
};

/// All conditions hold.
struct Predicate {
  std::vector<Condition> conditions;
  bool holds(const Problem& problem) const;
  std::string text() const;
};

Condition class_condition(std::size_t one);

/// A random option, and where it has a number a random constant and direction; knows of no cut of the table's classes.
Condition random_condition(Random& random);

/// A small case on which the predicate holds; nullopt when none was found.
std::optional<Problem> case_where(const Predicate& predicate, Random& random);

}  // namespace attest::mutants
