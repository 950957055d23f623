// Public: whether one set of timings is slower than another.
#pragma once

#include "harness/speed/compare_files.h"
#include "harness/speed/speed_comparison.h"
