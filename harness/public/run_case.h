// Public: one case made ready for its backends, and the verdict on each.
#pragma once

#include "harness/verdict/prepared_case.h"
