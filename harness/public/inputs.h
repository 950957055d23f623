// Public: the tensors of a case.
#pragma once

#include "harness/cases/inputs.h"
