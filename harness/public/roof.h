// Public: what the machine's multiply-adders and memory could do.
#pragma once

#include "harness/speed/machine/roof.h"
