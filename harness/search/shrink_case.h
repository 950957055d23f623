// Shrinking with a backend as the judge.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>

#include "backends/backend.h"
#include "harness/cases/case.h"
#include "harness/verdict/verdict.h"

namespace attest {

/// The verdict of one backend on one case line.
Verdict check_line(const Case& source, Backend& backend, int threads);

struct ShrunkCase {
  Case source;
  Verdict verdict;  ///< of that case: still a failure
  int tried = 0;
  double seconds = 0;
  bool finished = true;
};

/// `source` is a case on which the backend fails; the search ends after `budget` seconds, or at an interrupt. The case
/// of a file ends as a file, written to `out`; UserError: it can't be taken apart, or what fails are not its inputs
/// alone (see plain_file). `progress`, if any, is told how many cases were tried, and how many seconds are left.
ShrunkCase shrink_case(const Case& source, Backend& backend, int threads, double budget,
                       const std::filesystem::path& out = {},
                       const std::function<void(std::size_t tried, double seconds_left)>& progress = {});

}  // namespace attest
