// Public: the verdict on a case and backend.
#pragma once

#include "harness/verdict/verdict.h"
