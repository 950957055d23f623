// Public: a search for failing cases.
#pragma once

#include "harness/search/fuzz.h"
