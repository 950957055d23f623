// Public: the verdict on one case and one backend.
#pragma once

#include "harness/verdict/verdict.h"
