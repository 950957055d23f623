// Public: the smallest case on which a backend still fails.
#pragma once

#include "harness/search/shrink_case.h"
