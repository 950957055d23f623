// Public: suspect cases that are right, and why.
#pragma once

#include "harness/verdict/committed_lists.h"
