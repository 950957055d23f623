// Public: one case stage by stage.
#pragma once

#include "harness/trace/trace.h"
