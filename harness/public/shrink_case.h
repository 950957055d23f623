// Public: the smallest case that still fails.
#pragma once

#include "harness/search/shrink_case.h"
