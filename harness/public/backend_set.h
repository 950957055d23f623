// Public: the backends of a registry.
#pragma once

#include "harness/backends/set/backend_set.h"
