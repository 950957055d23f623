// Public: timing, its table and its file.
#pragma once

#include "harness/speed/files/bench_table.h"
#include "harness/speed/files/write_benchmark.h"
#include "harness/speed/timing/bench.h"
