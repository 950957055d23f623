// Public: outputs compared with the expectation.
#pragma once

#include "harness/comparison/compare.h"
