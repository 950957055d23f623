// Public: timing backends on a case whose results were right, the table, and the file.
#pragma once

#include "harness/speed/bench.h"
#include "harness/speed/bench_table.h"
#include "harness/speed/write_benchmark.h"
