// Public: peak of multiply-adds and bandwidth.
#pragma once

#include "harness/speed/machine/roof.h"
