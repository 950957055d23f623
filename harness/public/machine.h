// Public: processor, memory and system.
#pragma once

#include "harness/base/machine.h"
