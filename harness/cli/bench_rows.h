// All that attest bench timed, as one table for programs and pages.
#pragma once

#include <vector>

#include "harness/base/table.h"
#include "harness/speed/timing/bench.h"

namespace attest {

/// A row for each case and backend, in the order in which they were timed; times in milliseconds. Where a backend got
/// no speed, the last column says why and the numbers are empty.
Table bench_rows(const std::vector<BenchCase>& results);

}  // namespace attest
