// Public: verdicts read back from a file, to go on from.
#pragma once

#include "harness/report/earlier_run.h"
