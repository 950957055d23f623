// Public: whether results have the same bits again.
#pragma once

#include "harness/verdict/bitwise.h"
