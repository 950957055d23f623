// Public: random cases, and neighbours of those closest to their bound.
#pragma once

#include "harness/search/fuzz.h"
