// Public: suspect cases that are right.
#pragma once

#include "harness/verdict/committed_lists.h"
