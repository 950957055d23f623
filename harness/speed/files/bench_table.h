// The table of one benchmarked case.
#pragma once

#include <cstdio>

#include "harness/speed/timing/bench.h"

namespace attest {

/// Prints to `out` the speeds, ranked by run(); the other steps, ranked by the total; and who got no speed or rank, and
/// why.
void print_bench_table(const BenchCase& result, std::FILE* out = stdout);

}  // namespace attest
