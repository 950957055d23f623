// Public: what the program runs on.
#pragma once

#include "harness/base/machine.h"
