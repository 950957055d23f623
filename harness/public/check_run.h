// Public: a run of `check` as an object: cases, backends and reports of one's own.
#pragma once

#include "harness/run/check_run.h"
