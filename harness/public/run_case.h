// Public: one case and its verdicts.
#pragma once

#include "harness/verdict/prepared_case.h"
