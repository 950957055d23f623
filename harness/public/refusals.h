// Public: refusals held against the committed lists.
#pragma once

#include "harness/verdict/committed_lists.h"
#include "harness/verdict/refusal_lists.h"
