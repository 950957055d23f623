// Public: whether timings are slower than others.
#pragma once

#include "harness/speed/files/compare_files.h"
#include "harness/speed/samples/speed_comparison.h"
