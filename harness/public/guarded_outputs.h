// Public: outputs with memory around them that must not change.
#pragma once

#include "harness/comparison/guarded_outputs.h"
