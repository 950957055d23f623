// Public: reference values and their bounds.
#pragma once

#include "harness/comparison/expectation.h"
