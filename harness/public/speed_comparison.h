// Public: whether one set of timings is slower than another.
#pragma once

#include "harness/speed/files/compare_files.h"
#include "harness/speed/samples/speed_comparison.h"
