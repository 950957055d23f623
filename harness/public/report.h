// Public: verdicts as text: console, JSON Lines, JUnit, summary and annotations of a CI.
#pragma once

#include "harness/report/report.h"
