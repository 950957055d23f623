// Public: refusals held against the committed lists.
#pragma once

#include "harness/verdict/refusals.h"
