// Public: the reference's values of a case with the bounds of their errors.
#pragma once

#include "harness/comparison/expectation.h"
