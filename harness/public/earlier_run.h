// Public: verdicts of a file, to resume from.
#pragma once

#include "harness/report/earlier_run.h"
