// Public: the samples of a benchmark file.
#pragma once

#include "harness/speed/benchmark_file.h"
