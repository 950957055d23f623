// Public: whether right results have the same bits again.
#pragma once

#include "harness/verdict/bitwise.h"
