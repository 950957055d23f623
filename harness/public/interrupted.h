// Public: a flag that ends a run early.
#pragma once

#include "harness/base/interrupted.h"
