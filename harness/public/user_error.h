// Public: the error of a user, in one line.
#pragma once

#include "harness/base/user_error.h"
