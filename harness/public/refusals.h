// Public: refusals compared with the lists.
#pragma once

#include "harness/verdict/committed_lists.h"
#include "harness/verdict/refusal_lists.h"
