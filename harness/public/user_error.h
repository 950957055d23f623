// Public: the error of a user: one line that says what to do.
#pragma once

#include "harness/base/user_error.h"
