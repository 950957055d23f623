// The table of one benchmarked case.
#pragma once

#include "harness/speed/bench.h"

namespace attest {

/// Prints the comparison: time, speed, fraction of the roof, ratio to the fastest with its range.
void print_bench_table(const BenchCase& result);

}  // namespace attest
