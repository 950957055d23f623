// Public: random case lines.
#pragma once

#include "harness/cases/random_case.h"
