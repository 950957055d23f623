// Public: verdicts as console text, JSON Lines, JUnit and CI output.
#pragma once

#include "harness/report/report.h"
