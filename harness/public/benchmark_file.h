// Public: samples of a benchmark file.
#pragma once

#include "harness/speed/files/benchmark_file.h"
