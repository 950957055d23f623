// Public: outputs held against the expectation, each with its bound.
#pragma once

#include "harness/comparison/compare.h"
