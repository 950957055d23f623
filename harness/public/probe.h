// Public: tests of a backend's statements.
#pragma once

#include "harness/probe/probe.h"
