// Public: a small transformer whose attention is a backend's.
#pragma once

#include "harness/trace/language_model.h"
