// Public: outputs with guards around them.
#pragma once

#include "harness/comparison/guarded_outputs.h"
