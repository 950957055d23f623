// Random cases over everything that this version computes, a function of a seed alone.
//
// Sizes stand at the edges of tiles and one beside them, at 0 and 1, and at primes; fills include ties, overflow,
// cancellation and empty rows.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/cases/fill.h"
#include "reference/problem.h"

namespace attest {

/// A counter and a seed: the same numbers everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : seed_(seed) {}
  std::size_t below(std::size_t n) { return hash_words(seed_, 77, counter_++) % n; }
  template <class List>
  const auto& pick(const List& list, std::vector<int>& choices) {
    const std::size_t n = below(list.size());
    choices.push_back(static_cast<int>(n));
    return list[n];
  }

 private:
  std::uint64_t seed_, counter_ = 0;
};

/// One line with the choices that made it; the cost decides whether it is taken.
struct Candidate {
  Problem problem;
  std::vector<int> choices;
};

Candidate random_softmax_case(Random& random);
Candidate random_linear_case(Random& random);
/// Multiply-adds of the reference, about.
double random_case_cost(const Problem& problem);

}  // namespace attest
