// Public: verdicts told: console, JSON Lines, JUnit.
#pragma once

#include "harness/report/report.h"
