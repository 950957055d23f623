// The time of a search, and who is told how far it is.
#pragma once

#include <chrono>
#include <cstddef>

#include "harness/base/interrupted.h"
#include "harness/search/shrink_case.h"

namespace attest {

/// Asks whether there is time left: `budget` seconds from now, unless interrupted before.
class SearchBudget {
 public:
  SearchBudget(double seconds, const ShrinkProgress& progress) : budget_(seconds), progress_(progress) {}
  double spent() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  bool left() const { return !interrupted && spent() < budget_; }
  /// One case more is about to be tried.
  void count() {
    if (progress_) progress_(tried_, budget_ - spent());
    ++tried_;
  }

 private:
  double budget_;
  const ShrinkProgress& progress_;
  std::size_t tried_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace attest
