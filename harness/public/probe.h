// Public: what a backend states of itself, put to the test.
#pragma once

#include "harness/probe/probe.h"
