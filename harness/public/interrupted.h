// Public: the flag that ends a run early with its files valid.
#pragma once

#include "harness/base/interrupted.h"
