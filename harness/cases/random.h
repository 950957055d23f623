// Random numbers as a function of a seed alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "harness/cases/fill.h"

namespace attest {

/// A counter and a seed: the same numbers everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : seed_(seed) {}
  std::size_t below(std::size_t n) { return hash_words(seed_, 77, counter_++) % n; }
  template <class List>
  const auto& pick(const List& list) {
    return list[below(list.size())];
  }

 private:
  std::uint64_t seed_, counter_ = 0;
};

}  // namespace attest
