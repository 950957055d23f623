// Public: the backends of a registry: those named, or all that can be had.
#pragma once

#include "harness/backends/set/backend_set.h"
