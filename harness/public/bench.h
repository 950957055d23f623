// Public: timing backends on a case whose results were right, the table, and the file.
#pragma once

#include "harness/speed/files/bench_table.h"
#include "harness/speed/files/write_benchmark.h"
#include "harness/speed/timing/bench.h"
