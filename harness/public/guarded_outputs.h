// Public: outputs whose surroundings are watched.
#pragma once

#include "harness/comparison/guarded_outputs.h"
