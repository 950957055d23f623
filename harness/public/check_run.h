// Public: a run of `check` as an object.
#pragma once

#include "harness/run/check_run.h"
